//! Configuration shared by all Kafka clients of this process.

use std::error::Error;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{DeliveryResult, ProducerContext};
use serde::Deserialize;

/// Logs librdkafka's own messages at debug level: it repeats them every second while a broker is
/// unavailable, and the caller logs the outage once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuietContext;

impl ClientContext for QuietContext {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(target: "librdkafka", facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if is_refused(&error) && REFUSED_LOG.is_due() {
            tracing::warn!(
                reason,
                "kafka refuses the certificate, user or password, or its certificate is invalid; correct --kafka-properties"
            );
        }
        tracing::debug!(target: "librdkafka", %error, reason);
    }

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        oauth_token(config)
    }
}

/// All clients of this process fail together, several times per second.
static REFUSED_LOG: LogLimit = LogLimit(Mutex::new(None));

/// Permits one log line per minute.
struct LogLimit(Mutex<Option<Instant>>);

impl LogLimit {
    const INTERVAL: Duration = Duration::from_secs(60);

    fn is_due(&self) -> bool {
        let (now, mut last) =
            (Instant::now(), self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let is_due = last.is_none_or(|last| now >= last + Self::INTERVAL);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

fn is_refused(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::SaslAuthenticationFailed
                | RDKafkaErrorCode::SSL
        )
    )
}

/// For clients that publish nothing, such as the owner of the embedded broker.
impl ProducerContext for QuietContext {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

/// Begins the value of `sasl.oauthbearer.config` with the file of the token.
const TOKEN_FILE: &str = "token_file=";

/// Reads the token for SASL OAUTHBEARER: a JWT in the file that `sasl.oauthbearer.config=token_file=PATH` names,
/// such as a projected service account token. librdkafka calls this again before the token expires.
pub(crate) fn oauth_token(config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
    let path = config.and_then(|config| config.trim().strip_prefix(TOKEN_FILE));
    let path = path.ok_or("set sasl.oauthbearer.config=token_file=PATH")?;
    let token = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let token = token.trim().to_owned();
    let claims = claims_of(&token).ok_or_else(|| format!("{path}: no JWT with sub and exp"))?;
    let lifetime_ms = claims.exp.saturating_mul(1000);
    Ok(OAuthToken { token, principal_name: claims.sub, lifetime_ms })
}

/// The claims that librdkafka needs. The broker verifies the token.
#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    exp: i64,
}

fn claims_of(token: &str) -> Option<Claims> {
    let payload = base64url(token.split('.').nth(1)?)?;
    serde_json::from_slice(&payload).ok()
}

/// Decodes base64url without padding (RFC 4648).
fn base64url(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == digit)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// For clients that read metadata only.
impl ConsumerContext for QuietContext {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_read_from_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // {"alg":"none"} . {"sub":"daegi","exp":1794600000}
        let jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkYWVnaSIsImV4cCI6MTc5NDYwMDAwMH0.";
        fs::write(file.path(), format!("{jwt}\n")).unwrap();
        let config = format!("token_file={}", file.path().display());
        let token = oauth_token(Some(&config)).unwrap();
        assert_eq!((token.token.as_str(), token.principal_name.as_str()), (jwt, "daegi"));
        assert_eq!(token.lifetime_ms, 1_794_600_000_000);
        fs::write(file.path(), "secret").unwrap();
        let error = oauth_token(Some(&config)).err().unwrap().to_string();
        assert!(error.contains("no JWT") && !error.contains("secret"), "{error}");
        assert!(oauth_token(None).is_err() && oauth_token(Some("principal=a")).is_err());
    }
}
