use daegi_domain::{Eta, ItemId, LineState, Status, UserId};
use schemars::JsonSchema;
use serde::Serialize;

/// A place in a line and what there is to know about it now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ticket {
    /// The item people wait for.
    pub(crate) item_id: ItemId,
    /// Who holds the ticket.
    pub(crate) user_id: UserId,
    /// The ticket's text: keep it, it is the only proof of the place.
    pub(crate) token: String,
    /// Where the ticket stands.
    pub(crate) status: Status,
    /// The place in the line, 1 for the first; 0 for everybody who does not wait.
    pub(crate) position: u64,
    /// How many wait in the line.
    pub(crate) waiting_count: u64,
    /// Whether the line moves, and if not, why.
    pub(crate) line_state: LineState,
    /// When the turn will probably come; null while unknown, while the line stands still, and
    /// for everybody who does not wait.
    pub(crate) eta_seconds: Option<Eta>,
    /// When to ask again; 0 for everybody who does not wait.
    pub(crate) poll_after_ms: u64,
    /// The proof of entry, a JWT, once it is the person's turn.
    pub(crate) pass: Option<String>,
    /// Until when the entry lasts, as RFC 3339.
    pub(crate) pass_expires_at: Option<String>,
    /// Where to go now, if the item has such an address.
    pub(crate) entry_url: Option<String>,
}

impl Ticket {
    /// The same JSON as serde writes. Names, ids and token go in as they are, because none of their
    /// characters needs an escape; looking for one in each was a tenth of what a poll takes.
    ///
    /// # Errors
    /// None: a struct of strings and numbers always has a JSON form.
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        // Room for a ticket of somebody who waits: growing on the way would copy it twice.
        let mut json = Vec::with_capacity(512);
        plain(&mut json, b"{\"itemId\":\"", self.item_id.as_str());
        plain(&mut json, b"\",\"userId\":\"", self.user_id.as_str());
        plain(&mut json, b"\",\"token\":\"", &self.token);
        value(&mut json, b"\",\"status\":", &self.status)?;
        value(&mut json, b",\"position\":", &self.position)?;
        value(&mut json, b",\"waitingCount\":", &self.waiting_count)?;
        value(&mut json, b",\"lineState\":", &self.line_state)?;
        value(&mut json, b",\"etaSeconds\":", &self.eta_seconds)?;
        value(&mut json, b",\"pollAfterMs\":", &self.poll_after_ms)?;
        value(&mut json, b",\"pass\":", &self.pass)?;
        value(&mut json, b",\"passExpiresAt\":", &self.pass_expires_at)?;
        value(&mut json, b",\"entryUrl\":", &self.entry_url)?;
        json.push(b'}');
        Ok(json)
    }
}

fn plain(json: &mut Vec<u8>, name: &[u8], text: &str) {
    json.extend_from_slice(name);
    json.extend_from_slice(text.as_bytes());
}

fn value(json: &mut Vec<u8>, name: &[u8], value: &impl Serialize) -> serde_json::Result<()> {
    json.extend_from_slice(name);
    serde_json::to_writer(json, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> Ticket {
        Ticket {
            item_id: ItemId::parse("concert-2026.~_A").unwrap(),
            user_id: UserId::parse("kim+lee@example.com:1").unwrap(),
            token: "kim+lee@example.com:1-concert-2026.~_A-6878a70f-3101-8000-8ef0-de86b3eaf66c"
                .to_owned(),
            status: Status::Waiting,
            position: u64::MAX,
            waiting_count: 0,
            line_state: LineState::Open,
            eta_seconds: Some(Eta { p50: 7, p90: 19 }),
            poll_after_ms: 4_621,
            pass: None,
            pass_expires_at: None,
            entry_url: None,
        }
    }

    #[test]
    fn it_is_the_json_that_the_schema_describes() {
        let inside = Ticket {
            status: Status::Enterable,
            line_state: LineState::SoldOut,
            eta_seconds: None,
            pass: Some("a.b.c".to_owned()),
            pass_expires_at: Some("2026-11-20T20:00:00Z".to_owned()),
            entry_url: Some("https://shop.example/\"?a=\\".to_owned()),
            ..waiting()
        };
        for ticket in [waiting(), inside] {
            let expected = serde_json::to_string(&ticket).unwrap();
            assert_eq!(String::from_utf8(ticket.to_json().unwrap()).unwrap(), expected);
        }
    }
}
