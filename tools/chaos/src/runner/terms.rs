//! The terms of leaders, from the logs of the schedulers.

use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::fleet::ChaosFleet;
use super::recorder::Recorder;
use crate::history::{Entry, Millis, Term, TermEnd};

/// Records all terms.
pub(super) async fn read(
    fleet: &ChaosFleet,
    end: Millis,
    recorder: &Recorder,
) -> anyhow::Result<()> {
    for node in &fleet.schedulers {
        let log = node.member.lock().await.log().map(ToOwned::to_owned);
        let text = match log {
            Some(log) => tokio::fs::read_to_string(log).await?,
            None => continue,
        };
        let said = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        for mut term in terms(&node.name, said) {
            // Without a log line for its end, the leader was killed or still leads.
            if term.end == TermEnd::Open {
                let killed = recorder.killed_after(&node.name, term.from);
                term.end = if killed.is_some() { TermEnd::Killed } else { TermEnd::Open };
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
            Some("elected leader") => {
                let (member, end) = (member.to_owned(), TermEnd::Open);
                terms.push(Term { member, epoch, from: at, to: at, end });
            }
            Some("leadership lost, now standby" | "leadership released") => {
                if let Some(term) = terms.iter_mut().rfind(|term| term.epoch == epoch) {
                    term.to = at;
                    term.end = ending(line["reason"].as_str());
                }
            }
            _ => {}
        }
    }
    terms
}

fn ending(reason: Option<&str>) -> TermEnd {
    match reason {
        Some("stopped") => TermEnd::Stopped,
        Some("refused") => TermEnd::Fenced,
        _ => TermEnd::LeaseLost,
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
    fn terms_are_read_from_the_log() {
        let at = |second: u32| format!("2026-01-01T00:00:{second:02}.000000Z");
        let said = [
            json!({"timestamp": at(1), "message": "elected leader", "epoch": 3}),
            json!({"timestamp": at(2), "message": "lease lost", "epoch": 3}),
            json!({"timestamp": at(2), "message": "leadership lost, now standby", "epoch": 3, "reason": "lost"}),
            json!({"timestamp": at(5), "message": "elected leader", "epoch": 7}),
            json!({"timestamp": at(7), "message": "leadership released", "epoch": 7, "reason": "stopped"}),
            json!({"timestamp": at(8), "message": "elected leader", "epoch": 9}),
        ];
        let terms = terms("scheduler-1", said.into_iter());
        let observed: Vec<_> =
            terms.iter().map(|term| (term.epoch, term.to - term.from, term.end)).collect();
        let lost = (3, 1_000, TermEnd::LeaseLost);
        let released = (7, 2_000, TermEnd::Stopped);
        assert_eq!(observed, [lost, released, (9, 0, TermEnd::Open)]);
    }
}
