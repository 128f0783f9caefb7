//! Regenerates `sdk/vectors/challenge.json`: `cargo run -p daegi-domain --example challenge_vectors`. A test fails
//! while the file is out of date.

#![expect(clippy::unwrap_used, reason = "a developer tool: a panic shows what failed")]

use std::path::PathBuf;

use daegi_domain::challenge::solve;
use daegi_domain::{Challenge, ItemId, Millis, TicketKeys, UserId};
use serde_json::{Value, json};

const SECRETS: &str = "3:000102030405060708090a0b0c0d0e0f";
const NOW: Millis = 1_794_600_000_000;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sdk/vectors/challenge.json")
}

fn main() -> std::io::Result<()> {
    std::fs::write(file(), text())
}

/// Returns the text of the file: one line for each case.
fn text() -> String {
    let lines =
        |cases: Vec<Value>| cases.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
    let (solutions, verdicts) = (lines(solutions()), lines(verdicts()));
    format!(
        "{{\n\"ticketSecrets\": \"{SECRETS}\",\n\"solutions\": [\n{solutions}\n],\n\"verdicts\": [\n{verdicts}\n]\n}}\n"
    )
}

fn challenge(item: &str, user: &str, difficulty: u8) -> String {
    let keys: TicketKeys = SECRETS.parse().unwrap();
    let (item, user) = (ItemId::parse(item).unwrap(), UserId::parse(user).unwrap());
    keys.challenge(&item, &user, Challenge { issued_at: NOW, difficulty })
}

/// Challenges and the solutions with the lowest nonce.
fn solutions() -> Vec<Value> {
    let case = |(item, user, difficulty): (&str, &str, u8)| {
        let challenge = challenge(item, user, difficulty);
        let solution = solve(&challenge, difficulty).unwrap();
        json!({
            "itemId": item, "userId": user, "issuedAtMs": NOW, "difficulty": difficulty,
            "challenge": challenge, "solution": solution,
        })
    };
    [
        ("concert", "kim", 0),
        ("concert", "kim", 1),
        ("concert", "lee", 8),
        ("a.b~c-D_9", "kim@example.com", 12),
        ("concert", "park", 16),
        ("concert", "kim", 18),
    ]
    .map(case)
    .to_vec()
}

/// Solutions and what becomes of them: presented by a user at an item, some time after the issue.
fn verdicts() -> Vec<Value> {
    let keys: TicketKeys = SECRETS.parse().unwrap();
    let good = solve(&challenge("concert", "kim", 12), 12).unwrap();
    let text = good.split(':').next().unwrap().to_owned();
    let easier = format!("{}0b{}:0", &text[..2], &text[4..]);
    let case = |(name, item, user, solution, age_ms): (&str, &str, &str, &str, Millis)| {
        let (id, holder) = (ItemId::parse(item).unwrap(), UserId::parse(user).unwrap());
        let verdict = match keys.verify_solution(&id, &holder, solution, NOW + age_ms) {
            Ok(_) => "ok".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        json!({
            "name": name, "itemId": item, "userId": user, "solution": solution,
            "nowMs": NOW + age_ms, "verdict": verdict,
        })
    };
    [
        ("solved", "concert", "kim", &*good, 0),
        ("solved, at the end of its time", "concert", "kim", &good, Challenge::LIFETIME_MS),
        ("expired", "concert", "kim", &good, Challenge::LIFETIME_MS + 1),
        ("other item", "theatre", "kim", &good, 0),
        ("other user", "concert", "lee", &good, 0),
        ("wrong nonce", "concert", "kim", &format!("{text}:0"), 0),
        ("lowered difficulty", "concert", "kim", &easier, 0),
        ("no nonce", "concert", "kim", &text, 0),
        ("not a challenge", "concert", "kim", "0123:4", 0),
    ]
    .map(case)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_vectors_are_up_to_date() {
        let how = "sdk/vectors/challenge.json is out of date: cargo run -p daegi-domain --example challenge_vectors";
        assert!(std::fs::read_to_string(file()).unwrap() == text(), "{how}");
    }

    #[test]
    fn each_verdict_is_the_one_of_its_name() {
        let verdicts: Vec<_> =
            verdicts().iter().map(|case| case["verdict"].as_str().unwrap().to_owned()).collect();
        assert_eq!(verdicts[..2], ["ok", "ok"]);
        assert_eq!(verdicts[2..6], ["Expired", "Invalid", "Invalid", "WrongNonce"]);
        assert_eq!(verdicts[6..], ["Invalid", "Invalid", "Invalid"]);
    }
}
