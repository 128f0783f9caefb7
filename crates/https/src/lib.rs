//! The HTTPS client of daegi: short requests to a service on the internet.
//!
//! Every request has a timeout, connecting included, and every response a maximum size. Certificates are verified
//! against the authorities of the machine. Without an `https://` address none are needed.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// Sends requests and keeps connections for further ones. Clones share them.
#[derive(Debug, Clone)]
pub struct HttpsClient {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
    max_response: usize,
}

/// The machine has no certificate authorities, so that no `https://` address can be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "the certificate authorities of this machine cannot be read: {0}; install them, or use http:// addresses"
)]
pub struct AuthoritiesError(#[source] std::io::Error);

/// Why a request has no complete response.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The service did not reply before the timeout.
    #[error("no response in time")]
    Timeout,
    /// The connection failed, or the response is larger than permitted.
    #[error("{0}")]
    Failed(String),
}

impl HttpsClient {
    /// Creates a client for these addresses. Sends nothing.
    ///
    /// # Errors
    /// If an address begins with `https://` and the machine has no certificate authorities.
    pub fn new<'a>(
        mut addresses: impl Iterator<Item = &'a Uri>,
        timeout: Duration,
        max_response: usize,
    ) -> Result<Self, AuthoritiesError> {
        let builder = HttpsConnectorBuilder::new();
        let builder = if addresses.any(|address| address.scheme_str() == Some("https")) {
            let provider = ring::default_provider();
            builder.with_provider_and_native_roots(provider).map_err(AuthoritiesError)?
        } else {
            let tls = ClientConfig::builder_with_provider(ring::default_provider().into())
                .with_safe_default_protocol_versions()
                .map_err(|error| AuthoritiesError(std::io::Error::other(error)))?;
            builder.with_tls_config(
                tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
            )
        };
        let connector = builder.https_or_http().enable_http1().build();
        let http = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { http, timeout, max_response })
    }

    /// Sends a request. Returns status and body of the response.
    ///
    /// # Errors
    /// If there is no complete response in time, or it is too large.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), RequestError> {
        let response = async {
            let response = self.http.request(request).await;
            let response = response.map_err(|error| RequestError::Failed(cause(&error)))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), self.max_response).collect().await;
            let body = body.map_err(|error| RequestError::Failed(error.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        let response = tokio::time::timeout(self.timeout, response).await;
        response.unwrap_or(Err(RequestError::Timeout))
    }
}

/// Returns the last error of a chain, which names the cause.
fn cause(mut error: &dyn std::error::Error) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
