//! Widgets of third parties. Turnstile and hCaptcha verify responses with the same protocol: a form with the secret, the
//! response and the client's address, and JSON with `success`, `error-codes` and the `hostname` of the page.
//!
//! A response is accepted once; the provider refuses it afterwards. While the provider cannot be reached, no new user
//! joins such a line, because another rule than the one that the operator chose would apply otherwise.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use daegi_https::HttpsClient;
use daegi_runtime::config::WidgetConfig;
use daegi_runtime::outage::OutageLog;
use daegi_runtime::problem::PresentedWidget;
use http_body_util::Full;
use metrics::{Counter, Histogram, counter, histogram};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::app::COMPONENT;
use crate::error::{Error, Result};
use crate::metrics::{WIDGET_SECONDS, WIDGET_VERIFICATIONS};

/// Timeout of one verification, connecting included. Providers reply within some 100 ms.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a reply in bytes: one has about 300.
const MAX_REPLY: usize = 8 * 1024;

/// Maximum length of a response in bytes. Turnstile documents 2,048.
const MAX_RESPONSE: usize = 4 * 1024;

/// Verifications that a pod sends at the same time: at 200 ms each, 640 joins per second.
const MAX_CONCURRENT: usize = 128;

/// Codes that blame the configuration and not the user.
const CONFIGURATION_ERRORS: [&str; 6] = [
    "missing-input-secret",
    "invalid-input-secret",
    "sitekey-secret-mismatch",
    "not-using-dummy-passcode",
    "invalid-sitekey",
    "bad-request",
];

/// The code of a provider that cannot verify now.
const INTERNAL_ERROR: &str = "internal-error";

/// The widget of a pod, if one is configured.
pub(crate) struct Widget {
    verifier: Option<Verifier>,
    verifications: [Counter; Outcome::LABELS.len()],
    seconds: Histogram,
}

struct Verifier {
    config: WidgetConfig,
    /// `None` if the machine has no certificate authorities.
    http: Option<HttpsClient>,
    permits: Semaphore,
    outage: Mutex<OutageLog>,
}

/// The outcome of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Confirmed,
    Refused,
    /// The provider did not say.
    Unavailable(Cow<'static, str>),
    /// Too many verifications are in flight.
    Busy,
    NotConfigured,
}

/// The reply of a provider.
#[derive(Debug, Deserialize)]
struct Reply {
    success: bool,
    #[serde(default, rename = "error-codes")]
    error_codes: Vec<String>,
    #[serde(default)]
    hostname: Option<String>,
    /// What the page gave to the widget. Only Turnstile returns it.
    #[serde(default)]
    cdata: Option<String>,
}

impl Outcome {
    /// Values of the label `result`.
    const LABELS: [&str; 5] = ["confirmed", "refused", "unavailable", "busy", "not_configured"];

    fn index(&self) -> usize {
        match self {
            Self::Confirmed => 0,
            Self::Refused => 1,
            Self::Unavailable(_) => 2,
            Self::Busy => 3,
            Self::NotConfigured => 4,
        }
    }
}

impl Widget {
    pub(crate) fn new(config: Option<WidgetConfig>) -> Self {
        Self {
            verifier: config.map(Verifier::new),
            verifications: Outcome::LABELS
                .map(|result| counter!(WIDGET_VERIFICATIONS, "result" => result)),
            seconds: histogram!(WIDGET_SECONDS),
        }
    }

    /// Returns what a client shows.
    ///
    /// # Errors
    /// If no widget is configured.
    pub(super) fn presented(&self) -> Result<PresentedWidget> {
        let Some(Verifier { config, .. }) = &self.verifier else {
            self.verifications[Outcome::NotConfigured.index()].increment(1);
            return Err(Error::WidgetUnavailable);
        };
        Ok(PresentedWidget {
            provider: config.provider.name().to_owned(),
            site_key: config.site_key.clone(),
            script: config.script_url.to_string(),
        })
    }

    /// Returns the sources of a content security policy from which a page loads the widget.
    pub(crate) fn page_sources(&self) -> Option<String> {
        self.verifier.as_ref().map(|verifier| verifier.config.page_sources())
    }

    /// Returns whether the provider confirms the response of a user who solved this challenge.
    ///
    /// # Errors
    /// If the provider cannot be reached or no widget is configured.
    pub(super) async fn verify(
        &self,
        challenge: &str,
        response: &str,
        client: Option<IpAddr>,
    ) -> Result<bool> {
        let Some(verifier) = &self.verifier else { return self.record(Outcome::NotConfigured) };
        if response.len() > MAX_RESPONSE {
            return self.record(Outcome::Refused);
        }
        let Ok(_permit) = verifier.permits.try_acquire() else {
            return self.record(Outcome::Busy);
        };
        let began = Instant::now();
        let outcome = verifier.verify(challenge, response, client).await;
        self.seconds.record(began.elapsed());
        verifier.log(&outcome);
        self.record(outcome)
    }

    /// Counts an outcome. Returns whether the response is confirmed.
    fn record(&self, outcome: Outcome) -> Result<bool> {
        self.verifications[outcome.index()].increment(1);
        match outcome {
            Outcome::Confirmed => Ok(true),
            Outcome::Refused => Ok(false),
            Outcome::Unavailable(_) | Outcome::Busy | Outcome::NotConfigured => {
                Err(Error::WidgetUnavailable)
            }
        }
    }
}

impl Verifier {
    fn new(config: WidgetConfig) -> Self {
        let http = HttpsClient::new([&config.verify_url].into_iter(), VERIFY_TIMEOUT, MAX_REPLY);
        let http = http.inspect_err(|error| {
            tracing::error!(component = COMPONENT, %error, "widgets cannot be verified, lines with them take no new users");
        });
        let (permits, outage) =
            (Semaphore::new(MAX_CONCURRENT), Mutex::new(OutageLog::new("widget")));
        Self { config, http: http.ok(), permits, outage }
    }

    async fn verify(&self, challenge: &str, response: &str, client: Option<IpAddr>) -> Outcome {
        let Some(http) = &self.http else {
            return Outcome::Unavailable("there are no certificate authorities".into());
        };
        let form = self.form(response, client);
        let request = Request::post(&self.config.verify_url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::from(form));
        let Ok(request) = request else {
            return Outcome::Unavailable("the address of the provider is invalid".into());
        };
        match http.send(request).await {
            Ok((status, body)) => self.outcome(status, &body, challenge),
            Err(error) => Outcome::Unavailable(error.to_string().into()),
        }
    }

    fn form(&self, response: &str, client: Option<IpAddr>) -> String {
        let fields = [
            ("secret", Some(Cow::from(self.config.secret.reveal()))),
            ("response", Some(response.into())),
            ("sitekey", Some(self.config.site_key.as_str().into())),
            ("remoteip", client.map(|address| address.to_string().into())),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let fields = fields.map(|(name, value)| {
            format!("{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC))
        });
        fields.collect::<Vec<_>>().join("&")
    }

    /// Interprets a reply. Providers send 200 or, with an error, 400.
    fn outcome(&self, status: StatusCode, body: &[u8], challenge: &str) -> Outcome {
        let Ok(reply) = serde_json::from_slice::<Reply>(body) else {
            let error = format!("the provider replied with status {}", status.as_u16());
            return Outcome::Unavailable(error.into());
        };
        let codes = reply.error_codes.iter().map(String::as_str);
        let mut blamed = codes.filter(|code| CONFIGURATION_ERRORS.contains(code));
        if let Some(code) = blamed.next() {
            return Outcome::Unavailable(
                format!("the provider refused the request: {code}").into(),
            );
        }
        if reply.error_codes.iter().any(|code| code == INTERNAL_ERROR) {
            return Outcome::Unavailable("the provider has an internal error".into());
        }
        let hostnames = &self.config.hostnames;
        let is_own_page = hostnames.is_empty()
            || reply.hostname.is_some_and(|hostname| hostnames.contains(&hostname));
        // An empty text is what a page that gave none gets back.
        let data = reply.cdata.filter(|data| !data.is_empty());
        let is_own_challenge = data.is_none_or(|data| data == challenge);
        match reply.success && is_own_page && is_own_challenge {
            true => Outcome::Confirmed,
            false => Outcome::Refused,
        }
    }

    /// Logs the begin and the end of an outage once.
    fn log(&self, outcome: &Outcome) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Outcome::Unavailable(error) => {
                outage.failed(error);
            }
            _ => outage.recovered(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifier(hostnames: &[&str]) -> Verifier {
        let config = daegi_runtime::Config::parse(
            daegi_runtime::Role::AllInOne,
            [
                "--widget-site-key=site",
                "--widget-secret=s&cret",
                "--widget-verify-url=http://127.0.0.1:1/siteverify",
                &format!("--widget-hostnames={}", hostnames.join(",")),
            ]
            .map(str::to_owned),
            [],
        );
        Verifier::new(config.unwrap().into_config().unwrap().widget.unwrap())
    }

    #[test]
    fn the_form_is_encoded_and_names_the_client() {
        let form = verifier(&[]).form("a b+c/ä", Some([192, 0, 2, 1].into()));
        let expected =
            "secret=s%26cret&response=a%20b%2Bc%2F%C3%A4&sitekey=site&remoteip=192%2E0%2E2%2E1";
        assert_eq!(form, expected);
    }

    #[test]
    fn a_reply_confirms_only_a_response_of_this_page_and_challenge() {
        let outcome = |hostnames: &[&str], reply: &str| {
            verifier(hostnames).outcome(StatusCode::OK, reply.as_bytes(), "c1")
        };
        for (hostnames, reply, expected) in [
            (&[][..], r#"{"success":true}"#, Outcome::Confirmed),
            (&[], r#"{"success":true,"hostname":"a","cdata":"c1","extra":1}"#, Outcome::Confirmed),
            (&[], r#"{"success":true,"cdata":""}"#, Outcome::Confirmed),
            (&[], r#"{"success":true,"cdata":"c2"}"#, Outcome::Refused),
            (&["a", "b"], r#"{"success":true,"hostname":"b"}"#, Outcome::Confirmed),
            (&["a"], r#"{"success":true,"hostname":"b"}"#, Outcome::Refused),
            (&["a"], r#"{"success":true}"#, Outcome::Refused),
            (&[], r#"{"success":false,"error-codes":["timeout-or-duplicate"]}"#, Outcome::Refused),
        ] {
            assert_eq!(outcome(hostnames, reply), expected, "{reply}");
        }
    }

    #[test]
    fn a_wrong_secret_and_an_unreadable_reply_do_not_blame_the_user() {
        let secret = r#"{"success":false,"error-codes":["invalid-input-secret"]}"#;
        let internal = r#"{"success":false,"error-codes":["internal-error"]}"#;
        for (reply, reason) in [
            (secret, "refused the request: invalid-input-secret"),
            (internal, "internal error"),
            ("<html>", "status 502"),
        ] {
            let outcome = verifier(&[]).outcome(StatusCode::BAD_GATEWAY, reply.as_bytes(), "c1");
            let Outcome::Unavailable(error) = outcome else { panic!("{outcome:?}") };
            assert!(error.contains(reason), "{error}");
        }
    }
}
