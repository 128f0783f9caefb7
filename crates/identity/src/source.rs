//! Where the keys of an issuer are fetched from.

use std::path::PathBuf;
use std::time::Duration;

use daegi_runtime::config::JwksLocation;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use crate::keys::KeySet;

/// Timeout of one fetch, connecting included.
const FETCH_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum size of a key set in bytes: a key has about 500.
const MAX_DOCUMENT: usize = 64 * 1024;

type HttpClient = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// Where the keys are.
#[expect(clippy::large_enum_variant, reason = "there is one value per process")]
#[derive(Debug)]
pub(crate) enum Source {
    File(PathBuf),
    /// An address, with a client or the reason why there is none.
    Url(Uri, Result<HttpClient, String>),
}

impl Source {
    pub(crate) fn new(location: &JwksLocation) -> Self {
        match location {
            JwksLocation::File(path) => Self::File(path.clone()),
            JwksLocation::Url(url) => Self::Url(url.clone(), client(url)),
        }
    }

    /// Fetches the keys. The error is one line, without a key.
    pub(crate) async fn fetch(&self) -> Result<KeySet, String> {
        let document = match self {
            Self::File(path) => Bytes::from(read_file(path)?),
            Self::Url(url, http) => {
                let http = http.as_ref().map_err(String::clone)?;
                let fetch = tokio::time::timeout(FETCH_TIMEOUT, get(http, url)).await;
                let fetched = fetch.unwrap_or_else(|_| Err("no response in time".to_owned()));
                let host = url.host().unwrap_or_default();
                fetched.map_err(|error| format!("{host}: {error}"))?
            }
        };
        KeySet::parse(&document).map_err(|error| error.to_string())
    }
}

/// Reads a small file. It blocks for some microseconds, every few minutes.
fn read_file(path: &PathBuf) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let size = std::fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?.len();
    if size > MAX_DOCUMENT as u64 {
        return Err(format!("{shown}: more than {MAX_DOCUMENT} bytes"));
    }
    std::fs::read(path).map_err(|error| format!("{shown}: {error}"))
}

async fn get(http: &HttpClient, url: &Uri) -> Result<Bytes, String> {
    let response = http.get(url.clone()).await.map_err(|error| cause_of(&error))?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(format!("status {}", status.as_u16()));
    }
    let body = Limited::new(response.into_body(), MAX_DOCUMENT).collect().await;
    Ok(body.map_err(|error| error.to_string())?.to_bytes())
}

/// Returns a client. It trusts the certificate authorities of the machine.
fn client(url: &Uri) -> Result<HttpClient, String> {
    let builder = HttpsConnectorBuilder::new();
    let builder = if url.scheme_str() == Some("https") {
        builder.with_provider_and_native_roots(ring::default_provider()).map_err(|error| {
            format!("the certificate authorities of this machine cannot be read: {error}; install them, or give a file")
        })?
    } else {
        let tls = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        builder.with_tls_config(
            tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
        )
    };
    let connector = builder.https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// Returns the last error of a chain, which names the cause.
fn cause_of(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), cause_of)
}
