//! The binary as a process: output and exit codes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use daegi_testkit::child::signal;
use daegi_testkit::{ChildProcess, free_port};

fn daegi(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_daegi"));
    command.args(args).env_clear();
    command
}

fn output_of(args: &[&str]) -> Output {
    daegi(args).output().unwrap()
}

#[test]
fn a_bad_value_is_one_line_and_exit_64() {
    for (args, says) in [
        (vec!["--tick-ms", "soon"], "--tick-ms"),
        (vec!["--tick-ms", "-5"], "--tick-ms"),
        (vec!["--partitions", "0"], "--partitions"),
        (vec!["--store", "mysql://x"], "--store"),
        (vec!["--store", "redis+sentinel://a,b"], "service"),
        (vec!["--store", "redis+cluster://a:port"], "host:port"),
        (vec!["--kafka", "broker"], "--kafka"),
        (vec!["--ticket-secrets", "1:abc"], "--ticket-secrets"),
        (vec!["--otlp-endpoint", "collector:4318"], "http://"),
        (vec!["--trace-ratio", "1.5"], "from 0 to 1"),
        (vec!["--pass-key", "/no/such/file"], "--pass-key"),
        (vec!["--nonsense"], "--nonsense"),
    ] {
        let output = output_of(&args);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{args:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{args:?}: {line}");
        assert!(line.contains(says), "{args:?}: {line}");
    }
}

#[test]
fn help_names_every_variable_and_exits_0() {
    let output = output_of(&["--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for variable in ["DAEGI_STORE", "DAEGI_PUBLIC_ADDR", "DAEGI_TICKET_SECRETS", "DAEGI_LEASE_MS"] {
        assert!(help.contains(variable), "{help}");
    }
}

#[test]
fn sigterm_drains_and_exits_0() {
    let (mut child, banner) = started();
    assert!(banner.contains("/api/v1/item/demo/waiting-queue"), "{banner}");
    assert!(banner.contains("kcat -b 127.0.0.1:"), "{banner}");
    assert!(banner.contains("a restart deletes all items, lines, tickets"), "{banner}");
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A request whose body never arrives keeps the drain running for 10 s.
#[tokio::test]
async fn a_second_signal_exits_immediately() {
    let (mut child, banner) = started();
    let address = banner.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let mut request = std::net::TcpStream::connect(address).unwrap();
    let head = "POST /api/v1/item/demo/waiting-queue HTTP/1.1\r\nhost: x\r\nuser-id: kim\r\n\
        content-type: application/json\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n";
    request.write_all(head.as_bytes()).unwrap();
    request.read_exact(&mut [0; 12]).unwrap();
    signal(&child, "TERM");
    daegi_testkit::eventually(Duration::from_secs(5), "the listener is closed", || async {
        std::net::TcpStream::connect(address).is_err()
    })
    .await;
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Runs the commands of the banner as a user would copy them.
#[test]
fn the_printed_commands_work_unchanged() {
    let (child, banner) = started();
    let commands: Vec<&str> = banner
        .lines()
        .skip_while(|line| !line.starts_with("TOKEN="))
        .filter(|line| {
            ["TOKEN=", "curl ", "  |", "  http", "  '"].iter().any(|start| line.starts_with(start))
        })
        .collect();
    let script = format!("set -euo pipefail\n{}", commands.join("\n"));
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    signal(&child, "TERM");
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    for expected in ["kim-demo-", r#""position":"#, r#""valid":"#, r#"{"tokenCountToMove":3}"#] {
        assert!(printed.contains(expected), "{expected} is not in\n{printed}");
    }
}

#[test]
fn a_taken_port_is_one_clear_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = output_of(&["--public-addr", &address]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(line.contains(&address) && line.contains("--public-addr"), "{line}");
}

/// Starts the process on free ports and reads its output up to the last printed command.
fn started() -> (ChildProcess, String) {
    let address = |port: u16| format!("127.0.0.1:{port}");
    let (public, internal) = (address(free_port()), address(free_port()));
    let child = daegi(&["--public-addr", &public, "--internal-addr", &internal])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut child = ChildProcess::from(child);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut banner = String::new();
    while !banner.contains("tokenCountToMove=3'") {
        assert_ne!(lines.read_line(&mut banner).unwrap(), 0, "the process exited early: {banner}");
    }
    // A reader must stay, otherwise a later write would fail with a closed pipe.
    std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    (child, banner)
}
