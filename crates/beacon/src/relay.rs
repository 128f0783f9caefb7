use std::time::Duration;

use daegi_https::{AuthoritiesError, HttpsClient};
use http_body_util::Full;
use hyper::{Request, StatusCode, Uri};
use serde::Deserialize;

use crate::{QUICKNET_HASH, Signature, is_signed, parse_signature};

/// Timeout of one request, connecting included: a relay answers within some 100 ms, and the next relay is tried
/// after it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum size of a response: one has about 300 bytes.
const MAX_RESPONSE: usize = 4_096;

/// Fetches rounds from HTTP relays of drand.
#[derive(Debug, Clone)]
pub struct RelayClient {
    http: HttpsClient,
    relays: Vec<Uri>,
}

/// Why a round was not fetched: the error of each relay.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct FetchError(Vec<String>);

/// The part of a response that is used. The randomness follows from the signature.
#[derive(Debug, Deserialize)]
struct Round {
    round: u64,
    signature: String,
}

impl RelayClient {
    /// Creates a client of relays with these base addresses, which are tried in this order. No request is sent
    /// before the first round is fetched.
    ///
    /// # Errors
    /// If an address begins with `https://` and the machine has no certificate authorities.
    pub fn new(relays: Vec<Uri>) -> Result<Self, AuthoritiesError> {
        Ok(Self { http: HttpsClient::new(relays.iter(), REQUEST_TIMEOUT, MAX_RESPONSE)?, relays })
    }

    /// Returns whether there are no relays, so that no round can be fetched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.relays.is_empty()
    }

    /// Fetches the signature of a round from the first relay that has it, and verifies it.
    ///
    /// # Errors
    /// If no relay returned the signature of the round.
    pub async fn fetch(&self, round: u64) -> Result<Signature, FetchError> {
        let mut errors = Vec::new();
        for relay in &self.relays {
            let host = relay.host().unwrap_or_default();
            match self.fetch_from(relay, round).await {
                Ok(signature) => return Ok(signature),
                Err(error) => errors.push(format!("{host}: {error}")),
            }
        }
        Err(FetchError(errors))
    }

    async fn fetch_from(&self, relay: &Uri, round: u64) -> Result<Signature, String> {
        let base = relay.to_string();
        let url = format!("{}/{QUICKNET_HASH}/public/{round}", base.trim_end_matches('/'));
        let request = Request::get(url).body(Full::default());
        let request = request.map_err(|_| "the address is invalid".to_owned())?;
        let (status, body) = self.http.send(request).await.map_err(|error| error.to_string())?;
        if status != StatusCode::OK {
            return Err(format!("status {}", status.as_u16()));
        }
        let answer: Round = serde_json::from_slice(&body)
            .map_err(|_| "the response is not a round of drand".to_owned())?;
        let signature = parse_signature(&answer.signature).filter(|_| answer.round == round);
        let signature = signature.ok_or_else(|| "the response has another round".to_owned())?;
        if !is_signed(round, &signature) {
            return Err("quicknet did not sign the round with this signature".to_owned());
        }
        Ok(signature)
    }
}
