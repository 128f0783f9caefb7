//! HTTP responses and their outcomes.

use serde_json::Value;

use crate::history::Outcome;

/// Characters of an unreadable body that are recorded.
const MAX_SHOWN: usize = 80;

/// A complete response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    /// `Retry-After` in seconds.
    pub(super) after: Option<u64>,
    pub(super) text: String,
}

impl Response {
    /// The body of a success, or the outcome of a failure.
    pub(super) fn read(&self) -> Result<Value, Outcome> {
        let body = match self.text.as_str() {
            "" => Some(Value::Null),
            text => serde_json::from_str(text).ok(),
        };
        let code = body.as_ref().and_then(|body| body["code"].as_str());
        let code =
            code.map_or_else(|| self.text.chars().take(MAX_SHOWN).collect(), ToOwned::to_owned);
        let status = self.status;
        match body {
            // The pod had no reply of the store in time, so the effect is unknown.
            _ if status == 503 => Err(Outcome::Unavailable { code, after: self.after }),
            _ if status >= 500 => Err(Outcome::Malformed { status, what: code }),
            _ if status >= 400 => Err(Outcome::Refused { status, code }),
            Some(body) => Ok(body),
            None => Err(Outcome::Malformed { status, what: code }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, after: Option<u64>, text: &str) -> Result<Value, Outcome> {
        Response { status, after, text: text.to_owned() }.read()
    }

    #[test]
    fn an_unreadable_body_keeps_its_status() {
        let broken = |status, what: &str| Err(Outcome::Malformed { status, what: what.to_owned() });
        assert_eq!(read(500, None, "Internal Server Error"), broken(500, "Internal Server Error"));
        assert_eq!(read(502, None, r#"{"code":"X"}"#), broken(502, "X"));
        assert_eq!(read(200, None, "<html>"), broken(200, "<html>"));
        assert_eq!(read(204, None, ""), Ok(Value::Null));
        let refused = Outcome::Refused { status: 404, code: "ITEM_NOT_FOUND".to_owned() };
        assert_eq!(read(404, None, r#"{"code":"ITEM_NOT_FOUND"}"#), Err(refused));
    }

    #[test]
    fn a_503_keeps_its_retry_after() {
        let later = |after| Err(Outcome::Unavailable { code: "UNAVAILABLE".to_owned(), after });
        assert_eq!(read(503, Some(2), r#"{"code":"UNAVAILABLE"}"#), later(Some(2)));
        assert_eq!(read(503, None, r#"{"code":"UNAVAILABLE"}"#), later(None));
    }
}
