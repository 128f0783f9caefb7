//! Parses files of seeds and of rules; errors carry the line or entry.

use std::collections::HashSet;

use csv::{ErrorKind, StringRecord, Trim};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Entry, Seed, SeedError};

pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<Vec<Entry<T>>, SeedError> {
    let entries: Vec<Value> = serde_json::from_str(text).map_err(|error| invalid("JSON", error))?;
    let entries = entries.into_iter().zip(1..);
    let seeds = entries.map(|(entry, index): (Value, usize)| {
        let at = format!("entry {index}");
        match serde_json::from_value(entry) {
            Ok(parsed) => Ok((at, parsed)),
            Err(error) => Err(invalid(at, error)),
        }
    });
    seeds.collect()
}

pub(super) fn csv<T: DeserializeOwned>(text: &str) -> Result<Vec<Entry<T>>, SeedError> {
    let mut reader = csv::ReaderBuilder::new().trim(Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| invalid("line 1", error))?.clone();
    if headers.is_empty() {
        return Err(invalid("line 1", "the header is missing"));
    }
    let records = reader.records().map(|record| match record {
        Ok(record) => entry(&record, &headers),
        Err(error) => Err(row_error(&error)),
    });
    records.collect()
}

fn entry<T: DeserializeOwned>(
    record: &StringRecord,
    headers: &StringRecord,
) -> Result<Entry<T>, SeedError> {
    let line = record.position().map_or(0, csv::Position::line);
    let at = format!("line {line}");
    match record.deserialize(Some(headers)) {
        Ok(parsed) => Ok((at, parsed)),
        Err(error) => Err(invalid(at, reason(&error, headers))),
    }
}

/// The error of a row that the csv crate rejects.
fn row_error(error: &csv::Error) -> SeedError {
    let line = error.position().map_or(0, csv::Position::line);
    let reason = match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} columns, the header has {expected_len}")
        }
        _ => error.to_string(),
    };
    invalid(format!("line {line}"), reason)
}

/// Names the column by its header; the csv crate names it by number.
fn reason(error: &csv::Error, headers: &StringRecord) -> String {
    let ErrorKind::Deserialize { err, .. } = error.kind() else {
        return error.to_string();
    };
    let column = err.field().and_then(|field| headers.get(usize::try_from(field).ok()?));
    match column {
        Some(column) => format!("{column}: {}", err.kind()),
        None => err.kind().to_string(),
    }
}

/// Checks the rules that need more than one field or seed.
pub(super) fn validate(seeds: Vec<Entry<Seed>>) -> Result<Vec<Seed>, SeedError> {
    let mut ids = HashSet::new();
    for (at, seed) in &seeds {
        seed.policy.check().map_err(|error| invalid(at, error))?;
        if !ids.insert(&seed.item_id) {
            let (at, item) = (at.clone(), seed.item_id.clone());
            return Err(SeedError::Duplicate { at, item });
        }
    }
    Ok(seeds.into_iter().map(|(_, seed)| seed).collect())
}

fn invalid(at: impl Into<String>, reason: impl ToString) -> SeedError {
    SeedError::Invalid { at: at.into(), reason: reason.to_string() }
}
