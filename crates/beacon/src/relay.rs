use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
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
    http: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    relays: Vec<Uri>,
}

/// The machine has no certificate authorities, so that no `https://` relay can be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "the certificate authorities of this machine cannot be read: {0}; install them, or use http:// relays"
)]
pub struct RelayError(#[source] std::io::Error);

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
    pub fn new(relays: Vec<Uri>) -> Result<Self, RelayError> {
        let builder = HttpsConnectorBuilder::new();
        let builder = if relays.iter().any(|relay| relay.scheme_str() == Some("https")) {
            builder.with_provider_and_native_roots(ring::default_provider()).map_err(RelayError)?
        } else {
            let tls = ClientConfig::builder_with_provider(ring::default_provider().into())
                .with_safe_default_protocol_versions()
                .map_err(|error| RelayError(std::io::Error::other(error)))?;
            builder.with_tls_config(
                tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
            )
        };
        let connector = builder.https_or_http().enable_http1().build();
        Ok(Self { http: Client::builder(TokioExecutor::new()).build(connector), relays })
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
            match tokio::time::timeout(REQUEST_TIMEOUT, self.fetch_from(relay, round)).await {
                Ok(Ok(signature)) => return Ok(signature),
                Ok(Err(error)) => errors.push(format!("{host}: {error}")),
                Err(_) => errors.push(format!("{host}: no response in time")),
            }
        }
        Err(FetchError(errors))
    }

    async fn fetch_from(&self, relay: &Uri, round: u64) -> Result<Signature, String> {
        let base = relay.to_string();
        let url = format!("{}/{QUICKNET_HASH}/public/{round}", base.trim_end_matches('/'));
        let url = url.parse().map_err(|_| "the address is invalid".to_owned())?;
        let response = self.http.get(url).await.map_err(|error| cause_of(&error))?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(format!("status {}", status.as_u16()));
        }
        let body = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
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

/// Returns the last error of a chain, which names the cause.
fn cause_of(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => cause_of(source),
        None => error.to_string(),
    }
}
