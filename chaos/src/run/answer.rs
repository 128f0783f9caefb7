//! What was answered over HTTP, and what that says.

use serde_json::Value;

use crate::history::Outcome;

/// So much of an answer that cannot be read is written down.
const SHOWN: usize = 80;

/// An answer that has arrived as a whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// `Retry-After`, in seconds.
    pub(super) after: Option<u64>,
    pub(super) text: String,
}

impl Answer {
    /// What was asked for; or what it is instead, of which the status is always told.
    pub(super) fn read(&self) -> Result<Value, Outcome> {
        let body = match self.text.as_str() {
            "" => Some(Value::Null),
            text => serde_json::from_str(text).ok(),
        };
        let code = body.as_ref().and_then(|body| body["code"].as_str());
        let code = code.map_or_else(|| self.text.chars().take(SHOWN).collect(), ToOwned::to_owned);
        let status = self.status;
        match body {
            // A pod that could not ask the store in time cannot say what came of it.
            _ if status == 503 => Err(Outcome::Later { code, after: self.after }),
            _ if status >= 500 => Err(Outcome::Broken { status, what: code }),
            _ if status >= 400 => Err(Outcome::Refused { status, code }),
            Some(body) => Ok(body),
            None => Err(Outcome::Broken { status, what: code }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, after: Option<u64>, text: &str) -> Result<Value, Outcome> {
        Answer { status, after, text: text.to_owned() }.read()
    }

    #[test]
    fn an_answer_that_cannot_be_read_keeps_its_status() {
        let broken = |status, what: &str| Err(Outcome::Broken { status, what: what.to_owned() });
        assert_eq!(read(500, None, "Internal Server Error"), broken(500, "Internal Server Error"));
        assert_eq!(read(502, None, r#"{"code":"X"}"#), broken(502, "X"));
        assert_eq!(read(200, None, "<html>"), broken(200, "<html>"));
        assert_eq!(read(204, None, ""), Ok(Value::Null));
        let refused = Outcome::Refused { status: 404, code: "ITEM_NOT_FOUND".to_owned() };
        assert_eq!(read(404, None, r#"{"code":"ITEM_NOT_FOUND"}"#), Err(refused));
    }

    #[test]
    fn trouble_says_when_to_come_back_or_not() {
        let later = |after| Err(Outcome::Later { code: "UNAVAILABLE".to_owned(), after });
        assert_eq!(read(503, Some(2), r#"{"code":"UNAVAILABLE"}"#), later(Some(2)));
        assert_eq!(read(503, None, r#"{"code":"UNAVAILABLE"}"#), later(None));
    }
}
