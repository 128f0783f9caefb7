//! `daegi verify draw`: checks the record of a draw, without a network and without a store.
//!
//! `docs/DRAW.md` specifies the checks. All but the signature of the beacon are in [`daegi_domain::draw`].

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::ExitCode;

use daegi_domain::DrawRecord;
use daegi_domain::draw::DrawCheck;

/// The first argument that starts this command instead of the service.
pub const COMMAND: &str = "verify";

const USAGE: &str = "usage: daegi verify draw <file.json | -> [--token TOKEN]";

/// `EX_USAGE` of sysexits.
const EXIT_USAGE: u8 = 64;

/// Why a record cannot be checked.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The arguments are not those of the command.
    #[error("{USAGE}")]
    Usage,
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(String, std::io::Error),
    /// The file is not a record.
    #[error("{0} is not the JSON of a draw: {1}")]
    Json(String, serde_json::Error),
}

/// The arguments after `daegi verify draw`.
#[derive(Debug, PartialEq, Eq)]
struct Args {
    /// A path, or `-` for stdin.
    file: String,
    token: Option<String>,
}

/// Runs the command with the arguments after `verify`. Prints one line per check.
///
/// Exits with 0 if all checks hold, 1 if one fails, and 64 with one line on stderr if the arguments or the file are
/// invalid.
#[must_use]
#[expect(clippy::print_stderr, reason = "the output of a command")]
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    match read(args).map(|(record, token)| checks(&record, token.as_deref())) {
        Ok(checks) => {
            // A closed stdout must not change the result.
            let _ = std::io::stdout().lock().write_all(report(&checks).as_bytes());
            let holds = checks.iter().all(|check| check.ok);
            if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("daegi: {error}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn read(args: impl Iterator<Item = OsString>) -> Result<(DrawRecord, Option<String>), Error> {
    let Args { file, token } = Args::parse(args).ok_or(Error::Usage)?;
    let mut text = String::new();
    let read = if file == "-" {
        std::io::stdin().lock().read_to_string(&mut text).map(|_| ())
    } else {
        std::fs::read_to_string(&file).map(|content| text = content)
    };
    read.map_err(|error| Error::Read(file.clone(), error))?;
    let record = serde_json::from_str(&text).map_err(|error| Error::Json(file, error))?;
    Ok((record, token))
}

impl Args {
    /// Returns `None` if the arguments are invalid.
    fn parse(args: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut args = args.map(OsString::into_string);
        if args.next()?.ok()? != "draw" {
            return None;
        }
        let (mut file, mut token) = (None, None);
        while let Some(arg) = args.next() {
            let arg = arg.ok()?;
            let (slot, value) = if arg == "--token" {
                (&mut token, args.next()?.ok()?)
            } else if let Some(value) = arg.strip_prefix("--token=") {
                (&mut token, value.to_owned())
            } else if arg == "-" || !arg.starts_with('-') {
                (&mut file, arg)
            } else {
                return None;
            };
            if slot.replace(value).is_some() {
                return None;
            }
        }
        Some(Self { file: file?, token })
    }
}

/// Returns all checks of a record, including the signature of its beacon if it has one.
fn checks(record: &DrawRecord, token: Option<&str>) -> Vec<DrawCheck> {
    let mut checks = record.check(token);
    if let (Some(round), Some(signature)) = (record.beacon_round, record.beacon_signature) {
        let ok = daegi_beacon::is_signed(round, &signature.0);
        let message = if ok {
            format!("drand's quicknet signed round {round} with this signature.")
        } else {
            format!("The signature is not the one of drand's quicknet for round {round}.")
        };
        checks.push(DrawCheck { name: "signature", ok, message });
    }
    checks
}

/// Returns one line per check, and a last one with the result.
fn report(checks: &[DrawCheck]) -> String {
    let lines = checks.iter().map(|DrawCheck { name, ok, message }| {
        format!("{:<5} {name:<11} {message}\n", if *ok { "ok" } else { "FAILS" })
    });
    let failed = checks.iter().filter(|check| !check.ok).count();
    let result = match failed {
        0 => "All checks hold.\n".to_owned(),
        _ => format!("{failed} of {} checks failed.\n", checks.len()),
    };
    lines.chain([result]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn vectors() -> Vec<Value> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/vectors/draw.json");
        let mut vectors: Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        serde_json::from_value(vectors["records"].take()).unwrap()
    }

    fn case(name: &str) -> (DrawRecord, String) {
        let case = vectors().into_iter().find(|case| case["name"] == name).unwrap();
        let token = case["token"].as_str().unwrap().to_owned();
        (serde_json::from_value(case["record"].clone()).unwrap(), token)
    }

    fn args(args: &[&str]) -> Option<Args> {
        Args::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn a_genuine_record_holds_and_one_altered_byte_fails() {
        let (record, token) = case("drawn with a beacon");
        let genuine = checks(&record, Some(&token));
        assert!(genuine.iter().all(|check| check.ok), "{}", report(&genuine));
        assert_eq!(genuine.last().unwrap().name, "signature");
        assert!(report(&genuine).ends_with("All checks hold.\n"));
        let failed = |record: &DrawRecord| {
            let checks = checks(record, Some(&token)).into_iter().filter(|check| !check.ok);
            checks.map(|check| check.name).collect::<Vec<_>>()
        };
        for byte in 0..32 {
            let mut altered = record.clone();
            altered.reveal.as_mut().unwrap().0[byte] ^= 0x10;
            assert_eq!(failed(&altered), ["commitment", "seed"]);
            let mut altered = record.clone();
            altered.ticket.as_mut().unwrap().path[0].0[byte] ^= 0x10;
            assert_eq!(failed(&altered), ["path"]);
        }
        let mut altered = record;
        altered.beacon_round = altered.beacon_round.map(|round| round + 1);
        assert_eq!(failed(&altered), ["signature"]);
    }

    #[test]
    fn arguments_are_a_file_and_a_token() {
        let expected = |token: Option<&str>| {
            Some(Args { file: "draw.json".into(), token: token.map(Into::into) })
        };
        assert_eq!(args(&["draw", "draw.json"]), expected(None));
        assert_eq!(args(&["draw", "draw.json", "--token", "t"]), expected(Some("t")));
        assert_eq!(args(&["draw", "--token=t", "draw.json"]), expected(Some("t")));
        assert_eq!(args(&["draw", "-"]).unwrap().file, "-");
        let bad: [&[&str]; 7] = [
            &[],
            &["line"],
            &["draw"],
            &["draw", "a", "b"],
            &["draw", "a", "--token"],
            &["draw", "a", "--token", "t", "--token", "t"],
            &["draw", "a", "--fast"],
        ];
        for bad in bad {
            assert_eq!(args(bad), None, "{bad:?}");
        }
    }
}
