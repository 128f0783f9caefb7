//! From text to seeds, with the place of whatever is wrong.

use std::collections::HashSet;

use csv::{ErrorKind, StringRecord, Trim};
use serde_json::Value;

use super::{Placed, Seed, SeedError};

pub(super) fn json(text: &str) -> Result<Vec<Placed>, SeedError> {
    let entries: Vec<Value> = serde_json::from_str(text).map_err(|error| bad("JSON", error))?;
    let entries = entries.into_iter().zip(1..);
    let placed = entries.map(|(entry, index): (Value, usize)| {
        let at = format!("entry {index}");
        match serde_json::from_value(entry) {
            Ok(seed) => Ok((at, seed)),
            Err(error) => Err(bad(at, error)),
        }
    });
    placed.collect()
}

pub(super) fn csv(text: &str) -> Result<Vec<Placed>, SeedError> {
    let mut reader = csv::ReaderBuilder::new().trim(Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| bad("line 1", error))?.clone();
    if headers.is_empty() {
        return Err(bad("line 1", "the header is missing"));
    }
    let records = reader.records().map(|record| match record {
        Ok(record) => placed(&record, &headers),
        Err(error) => Err(uneven(&error)),
    });
    records.collect()
}

fn placed(record: &StringRecord, headers: &StringRecord) -> Result<Placed, SeedError> {
    let line = record.position().map_or(0, csv::Position::line);
    let at = format!("line {line}");
    match record.deserialize(Some(headers)) {
        Ok(seed) => Ok((at, seed)),
        Err(error) => Err(bad(at, reason(&error, headers))),
    }
}

/// A row that csv itself refuses.
fn uneven(error: &csv::Error) -> SeedError {
    let line = error.position().map_or(0, csv::Position::line);
    let reason = match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} columns, the header has {expected_len}")
        }
        _ => error.to_string(),
    };
    bad(format!("line {line}"), reason)
}

/// csv's own words name the column by number; its name is easier to find.
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

/// The rules that need more than one field, or more than one seed.
pub(super) fn checked(seeds: Vec<Placed>) -> Result<Vec<Seed>, SeedError> {
    let mut ids = HashSet::new();
    for (at, seed) in &seeds {
        seed.policy.check().map_err(|error| bad(at, error))?;
        if !ids.insert(&seed.item_id) {
            let (at, item) = (at.clone(), seed.item_id.clone());
            return Err(SeedError::Twice { at, item });
        }
    }
    Ok(seeds.into_iter().map(|(_, seed)| seed).collect())
}

fn bad(at: impl Into<String>, reason: impl ToString) -> SeedError {
    SeedError::Bad { at: at.into(), reason: reason.to_string() }
}
