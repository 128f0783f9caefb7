//! `daegi simulate`: what a sale would do with other settings, without a network and without a store.
//!
//! The engine is [`daegi_simulation`]; `docs/ADMIN.md` describes the command.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use daegi_simulation::{Arrivals, Forecast, Limits, Sale, simulate};
use serde_json::{Value, json};

/// The first argument that starts this command instead of the service.
pub const COMMAND: &str = "simulate";

const USAGE: &str = "\
usage: daegi simulate [sale.json | -] [--json] [option value]...
  --arrivals FILE   joins per minute: the JSON of GET …/history, or a CSV with the joins in its last column
  --total N --minutes N --shape opening|steady|bursts   invented arrivals
  --stock N   --rate N (admissions per tick)   --tick-ms N   --capacity N   --pass-ttl SECONDS
  --grace SECONDS   --no-shows PERCENT   --buy PERCENT   --checkout SECONDS   --seed N   --max-hours N";

/// `EX_USAGE` of sysexits.
const EXIT_USAGE: u8 = 64;

/// What is simulated without a file and without options.
const DEFAULT_SALE: (u32, u32, u32) = (5_000, 10, 1_000);

/// The options with a number, and the field of the sale that each sets.
const NUMBERS: [(&str, &str); 13] = [
    ("--total", "/arrivals/total"),
    ("--minutes", "/arrivals/minutes"),
    ("--stock", "/stock"),
    ("--rate", "/policy/tokensPerTick"),
    ("--tick-ms", "/tickMs"),
    ("--capacity", "/policy/maxActive"),
    ("--pass-ttl", "/policy/passTtlSeconds"),
    ("--grace", "/policy/graceSeconds"),
    ("--no-shows", "/visitors/noShowPercent"),
    ("--buy", "/visitors/buyPercent"),
    ("--checkout", "/visitors/checkoutSeconds"),
    ("--seed", "/seed"),
    ("--max-hours", "/maxHours"),
];

/// Why a sale cannot be simulated.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The arguments are not those of the command.
    #[error("{0}\n{USAGE}")]
    Usage(String),
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(String, std::io::Error),
    /// A file or the options are no sale.
    #[error("this is not a sale: {0}")]
    Json(#[from] serde_json::Error),
    /// The sale breaks a rule, or takes too long.
    #[error(transparent)]
    Sale(#[from] daegi_simulation::Error),
}

/// Runs the command with the arguments after `simulate`, and prints the forecast.
///
/// Exits with 64 and a message on stderr if the arguments or the sale are invalid.
#[must_use]
#[expect(clippy::print_stderr, reason = "the output of a command")]
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    match report(args) {
        Ok(report) => {
            // A closed stdout must not change the result.
            let _ = std::io::stdout().lock().write_all(report.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("daegi: {error}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn report(args: impl Iterator<Item = OsString>) -> Result<String, Error> {
    let (sale, is_json) = read(args)?;
    let began = Instant::now();
    let forecast = simulate(&sale, &Limits::default())?;
    if is_json {
        return Ok(serde_json::to_string_pretty(&forecast)? + "\n");
    }
    Ok(format!("{forecast}{}", speed(&forecast, began.elapsed())))
}

fn speed(forecast: &Forecast, took: Duration) -> String {
    let times = forecast.seconds as f64 / took.as_secs_f64().max(0.001);
    let minutes = forecast.seconds / 60;
    format!(
        "{minutes} minutes simulated in {:.1} s, {times:.0} times real time\n",
        took.as_secs_f64()
    )
}

/// Reads the arguments: the sale of a file, or a default one, changed by the options.
fn read(args: impl Iterator<Item = OsString>) -> Result<(Sale, bool), Error> {
    let usage = |text: &str| Error::Usage(text.to_owned());
    let (mut file, mut recording, mut shape, mut is_json) = (None, None, None, false);
    let mut numbers = Vec::new();
    let mut args = args.map(|arg| arg.into_string().map_err(|_| usage("an argument is not UTF-8")));
    while let Some(arg) = args.next().transpose()? {
        let mut value =
            || args.next().unwrap_or_else(|| Err(Error::Usage(format!("{arg} has no value"))));
        if arg == "--json" {
            is_json = true;
        } else if arg == "--arrivals" {
            recording = Some(value()?);
        } else if arg == "--shape" {
            shape = Some(value()?);
        } else if let Some((_, field)) = NUMBERS.iter().find(|(option, _)| *option == arg) {
            let text = value()?;
            let number: u64 = text
                .parse()
                .map_err(|_| Error::Usage(format!("{arg} is {text:?}, not a number")))?;
            numbers.push((*field, json!(number)));
        } else if file.is_none() && (arg == "-" || !arg.starts_with('-')) {
            file = Some(arg);
        } else {
            return Err(Error::Usage(format!("unknown argument {arg}")));
        }
    }
    let mut sale = match file {
        Some(file) => serde_json::from_str(&text_of(&file)?)?,
        None => default_sale(),
    };
    if let Some(recording) = recording {
        sale["arrivals"] = serde_json::to_value(Arrivals::read(&text_of(&recording)?)?)?;
    }
    let shape = shape.map(|shape| ("/arrivals/shape", Value::String(shape)));
    for (field, value) in numbers.into_iter().chain(shape) {
        set(&mut sale, field, value);
    }
    Ok((serde_json::from_value(sale)?, is_json))
}

fn default_sale() -> Value {
    let (total, minutes, stock) = DEFAULT_SALE;
    json!({ "arrivals": { "total": total, "minutes": minutes }, "stock": stock })
}

/// Sets a field, and creates the objects on the way to it.
fn set(sale: &mut Value, field: &str, value: Value) {
    let mut place = sale;
    for name in field.trim_start_matches('/').split('/') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = value;
}

fn text_of(file: &str) -> Result<String, Error> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().lock().read_to_string(&mut text).map(|_| ()),
        file => std::fs::read_to_string(file).map(|content| text = content),
    };
    read.map_err(|error| Error::Read(file.to_owned(), error))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale(args: &[&str]) -> Result<(Sale, bool), Error> {
        read(args.iter().map(OsString::from))
    }

    #[test]
    fn options_change_the_sale() {
        let (sale, is_json) = sale(&[
            "--total",
            "200",
            "--shape",
            "bursts",
            "--rate",
            "3",
            "--capacity",
            "20",
            "--no-shows",
            "30",
            "--json",
        ])
        .unwrap();
        assert!(is_json);
        assert_eq!((sale.arrivals.count(), sale.stock), (200, 1_000));
        assert_eq!((sale.policy.tokens_per_tick, sale.policy.max_active), (Some(3), Some(20)));
        assert_eq!(sale.visitors.no_show_percent, 30);
    }

    #[test]
    fn every_option_is_a_field_of_the_sale() {
        for (option, _) in NUMBERS {
            let value = if option == "--grace" { "10" } else { "9" };
            sale(&[option, value]).unwrap_or_else(|error| panic!("{option}: {error}"));
            assert!(USAGE.contains(option), "{option}");
        }
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (args, says) in [
            (&["--fast"][..], "--fast"),
            (&["--rate"], "--rate has no value"),
            (&["--rate", "many"], "many"),
            (&["no-such-file.json"], "no-such-file.json"),
            (&["--shape", "square"], "not a sale"),
        ] {
            let error = sale(args).unwrap_err().to_string();
            assert!(error.contains(says), "{args:?}: {error}");
        }
    }

    #[test]
    fn a_report_is_a_table_or_json() {
        let args = |more: &[&str]| {
            let args = ["--total", "300", "--minutes", "1", "--stock", "100"];
            report(args.iter().chain(more).map(OsString::from)).unwrap()
        };
        let table = args(&[]);
        assert!(table.contains("sold out after") && table.contains("times real time"), "{table}");
        let json: Value = serde_json::from_str(&args(&["--json"])).unwrap();
        assert_eq!((json["arrivals"].as_u64(), json["bought"].as_u64()), (Some(300), Some(100)));
        assert_eq!(args(&["--json"]), args(&["--json"]), "the same seed");
    }
}
