//! Who led when, from what the schedulers said.

use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::recorder::Recorder;
use super::stage::Stage;
use crate::history::{Ending, Entry, Millis, Term};

/// Writes down every term there was.
pub(super) async fn read(stage: &Stage, end: Millis, recorder: &Recorder) -> anyhow::Result<()> {
    for slot in &stage.schedulers {
        let log = slot.member.lock().await.log().map(ToOwned::to_owned);
        let text = match log {
            Some(log) => tokio::fs::read_to_string(log).await?,
            None => continue,
        };
        let said = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        for mut term in terms(&slot.name, said) {
            // One that says nothing of its end was killed, or leads still.
            if term.ending == Ending::Open {
                let killed = recorder.killed_after(&slot.name, term.from);
                term.ending = if killed.is_some() { Ending::Killed } else { Ending::Open };
                term.to = killed.unwrap_or(end);
            }
            recorder.write(&Entry::Term(term));
        }
    }
    Ok(())
}

fn terms(member: &str, said: impl Iterator<Item = Value>) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for line in said {
        let (Some(epoch), Some(at)) = (line["epoch"].as_u64(), moment(&line)) else { continue };
        match line["message"].as_str() {
            Some("leading") => {
                let (member, ending) = (member.to_owned(), Ending::Open);
                terms.push(Term { member, epoch, from: at, to: at, ending });
            }
            Some("standing by") => {
                if let Some(term) = terms.iter_mut().rfind(|term| term.epoch == epoch) {
                    term.to = at;
                    term.ending = ending(line["reason"].as_str());
                }
            }
            _ => {}
        }
    }
    terms
}

fn ending(reason: Option<&str>) -> Ending {
    match reason {
        Some("stopped") => Ending::Stopped,
        Some("refused") => Ending::Refused,
        _ => Ending::Lost,
    }
}

fn moment(line: &Value) -> Option<Millis> {
    let at = humantime::parse_rfc3339(line["timestamp"].as_str()?).ok()?;
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    Millis::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terms_are_what_a_scheduler_said_of_them() {
        let at = |second: u32| format!("2026-01-01T00:00:{second:02}.000000Z");
        let said = [
            json!({"timestamp": at(1), "message": "leading", "epoch": 3}),
            json!({"timestamp": at(2), "message": "lease lost", "epoch": 3}),
            json!({"timestamp": at(2), "message": "standing by", "epoch": 3, "reason": "lost"}),
            json!({"timestamp": at(5), "message": "leading", "epoch": 7}),
        ];
        let terms = terms("scheduler-1", said.into_iter());
        let told: Vec<_> =
            terms.iter().map(|term| (term.epoch, term.to - term.from, term.ending)).collect();
        assert_eq!(told, [(3, 1_000, Ending::Lost), (7, 0, Ending::Open)]);
    }
}
