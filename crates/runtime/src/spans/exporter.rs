//! Exports spans to the collector in batches, one request at a time.

use std::io;
use std::time::Duration;

use axum::http::Request;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use metrics::{Counter, counter};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message as _;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::span::attribute;
use super::{SPANS, Span};
use crate::config::OtlpCollector;
use crate::outage::{Backoff, OutageLog};
use crate::process::process_name;

/// Maximum number of spans in one request.
const MAX_BATCH: usize = 512;

/// How long the first span of a batch waits for others, and the first backoff.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Timeout of one request; during the shutdown [`SHUTDOWN_EXPORT_TIMEOUT`] applies.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
const SHUTDOWN_EXPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum backoff after failed requests.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Exports queued spans.
pub(super) struct SpanExporter {
    /// `None` until the CAs could be read.
    http: Option<HttpClient>,
    collector: OtlpCollector,
    resource: Resource,
    spans: mpsc::Receiver<Span>,
    sent: Counter,
    lost: Counter,
}

impl SpanExporter {
    pub(super) fn new(
        collector: OtlpCollector,
        service: &str,
        spans: mpsc::Receiver<Span>,
    ) -> Self {
        Self {
            http: None,
            collector,
            resource: resource(service),
            spans,
            // Registered at the start, so that a query can distinguish 0 from absent.
            sent: counter!(SPANS, "result" => "sent"),
            lost: counter!(SPANS, "result" => "lost"),
        }
    }

    /// Exports until all tracers are dropped. During a shutdown it ends at the latest after `drain`
    /// plus [`SHUTDOWN_EXPORT_TIMEOUT`], before the shutdown deadline of the process.
    pub(super) async fn run(mut self, stop: CancellationToken, drain: Duration) {
        let overdue = async {
            stop.cancelled().await;
            tokio::time::sleep(drain + SHUTDOWN_EXPORT_TIMEOUT).await;
        };
        tokio::select! {
            () = self.export_batches(&stop) => {}
            () = overdue => {}
        }
    }

    async fn export_batches(&mut self, stop: &CancellationToken) {
        let mut batch = Vec::new();
        let mut outage = OutageLog::new("span exporter");
        let mut backoff = Backoff::new(BATCH_INTERVAL, MAX_BACKOFF);
        while self.collect_batch(&mut batch, stop).await {
            let spans = batch.len() as u64;
            let Err(reason) = self.send(std::mem::take(&mut batch), stop).await else {
                self.sent.increment(spans);
                outage.recovered();
                backoff.reset();
                continue;
            };
            self.lost.increment(spans);
            outage.failed(&reason);
            // The next request reads the CAs again, which may have been corrected.
            self.http = None;
            if stop.is_cancelled() {
                return self.drop_remaining();
            }
            stop.run_until_cancelled(tokio::time::sleep(backoff.next_delay())).await;
        }
    }

    /// Fills a batch. Returns `false` when all tracers are dropped and the queue is empty.
    async fn collect_batch(&mut self, batch: &mut Vec<Span>, stop: &CancellationToken) -> bool {
        if self.spans.recv_many(batch, MAX_BATCH).await == 0 {
            return false;
        }
        if batch.len() < MAX_BATCH {
            stop.run_until_cancelled(tokio::time::sleep(BATCH_INTERVAL)).await;
        }
        while batch.len() < MAX_BATCH
            && let Ok(span) = self.spans.try_recv()
        {
            batch.push(span);
        }
        true
    }

    async fn send(&mut self, batch: Vec<Span>, stop: &CancellationToken) -> Result<(), String> {
        let body = Full::from(self.message(batch).encode_to_vec());
        let mut request = Request::post(self.collector.endpoint.traces())
            .body(body)
            .map_err(|error| error.to_string())?;
        *request.headers_mut() = self.collector.headers()?;
        let content_type = HeaderValue::from_static("application/x-protobuf");
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        let http = match &self.http {
            Some(http) => http,
            None => {
                self.http.insert(http_client(&self.collector).map_err(|error| error.to_string())?)
            }
        };
        let sending = async {
            let response = http.request(request).await.map_err(|error| cause_of(&error))?;
            let status = response.status();
            // Reads the body to its end, so that the connection can be reused.
            let _ = response.into_body().collect().await;
            if status.is_success() { Ok(()) } else { Err(format!("collector returned {status}")) }
        };
        let timeout = async {
            stop.run_until_cancelled(tokio::time::sleep(EXPORT_TIMEOUT - SHUTDOWN_EXPORT_TIMEOUT))
                .await;
            tokio::time::sleep(SHUTDOWN_EXPORT_TIMEOUT).await;
        };
        tokio::select! {
            outcome = sending => outcome,
            () = timeout => Err("collector did not respond in time".to_owned()),
        }
    }

    fn message(&self, batch: Vec<Span>) -> ExportTraceServiceRequest {
        let scope = InstrumentationScope { name: "daegi".to_owned(), ..Default::default() };
        let scope_spans = ScopeSpans {
            scope: Some(scope),
            spans: batch.into_iter().map(|span| span.0).collect(),
            ..Default::default()
        };
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scope_spans],
                ..Default::default()
            }],
        }
    }

    fn drop_remaining(&mut self) {
        while self.spans.try_recv().is_ok() {
            self.lost.increment(1);
        }
    }
}

/// Creates the client of the collector. The CAs are read only for an encrypted connection.
fn http_client(collector: &OtlpCollector) -> io::Result<HttpClient> {
    let builder = HttpsConnectorBuilder::new();
    let builder = if collector.endpoint.is_encrypted() && collector.ca.is_none() {
        builder.with_provider_and_native_roots(ring::default_provider())?
    } else {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &collector.ca {
            for certificate in CertificateDer::pem_file_iter(path).map_err(io::Error::other)? {
                roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
            }
        }
        let tls = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        builder.with_tls_config(tls.with_root_certificates(roots).with_no_client_auth())
    };
    let connector = builder.https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// Returns the last error of a chain, which names the cause.
fn cause_of(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => cause_of(source),
        None => error.to_string(),
    }
}

/// Describes this process.
fn resource(service: &str) -> Resource {
    let attributes = [
        ("service.name", service.to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", process_name()),
    ];
    let attributes = attributes.map(|(key, text)| attribute(key, Value::StringValue(text)));
    Resource { attributes: attributes.into(), ..Default::default() }
}
