//! `daegi verify draw` as a process: output and exit codes.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the command with a text on stdin.
pub(crate) fn verify(args: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_daegi"));
    command.arg("verify").args(args).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command does not read stdin if its arguments are invalid.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_record_of_the_vectors_has_its_result() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/vectors/draw.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for case in vectors["records"].as_array().unwrap() {
        let mut args = vec!["draw", "-"];
        args.extend(case["token"].as_str().into_iter().flat_map(|token| ["--token", token]));
        let output = verify(&args, &case["record"].to_string());
        let lines = text(&output.stdout);
        let checks = case["checks"].as_array().unwrap();
        let holds = checks.iter().all(|check| check["ok"] == true);
        let expected = if holds { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(expected), "{}: {lines}", case["name"]);
        for check in checks {
            let result = if check["ok"] == true { "ok" } else { "FAILS" };
            let line = format!("{result:<5} {} ", check["name"].as_str().unwrap());
            assert!(lines.contains(&line), "{}: {line} is not in {lines}", case["name"]);
        }
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn invalid_arguments_and_files_are_one_line_and_exit_64() {
    for (args, stdin, says) in [
        (vec!["draw"], "", "usage: daegi verify draw"),
        (vec!["line", "-"], "", "usage: daegi verify draw"),
        (vec!["draw", "/no/such/file"], "", "cannot read /no/such/file"),
        (vec!["draw", "-"], "", "not the JSON of a draw"),
        (vec!["draw", "-"], "{\"itemId\":\"concert\"}", "missing field `version`"),
    ] {
        let output = verify(&args, stdin);
        let line = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{args:?}: {line}");
        assert!(line.contains(says), "{args:?}: {line}");
        assert_eq!(text(&output.stdout), "");
    }
}
