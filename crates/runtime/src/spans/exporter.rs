//! Exports spans to the collector in batches, one request at a time.

use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
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
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::span::attribute;
use super::{SPANS, Span};
use crate::config::OtlpEndpoint;
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

/// Exports queued spans.
pub(super) struct SpanExporter {
    http: Client<HttpConnector, Full<Bytes>>,
    url: Uri,
    resource: Resource,
    spans: mpsc::Receiver<Span>,
    sent: Counter,
    lost: Counter,
}

impl SpanExporter {
    pub(super) fn new(endpoint: &OtlpEndpoint, service: &str, spans: mpsc::Receiver<Span>) -> Self {
        Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            url: endpoint.traces().clone(),
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

    async fn send(&self, batch: Vec<Span>, stop: &CancellationToken) -> Result<(), String> {
        let request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Full::from(self.message(batch).encode_to_vec()))
            .map_err(|error| error.to_string())?;
        let sending = async {
            let response = self.http.request(request).await.map_err(|error| error.to_string())?;
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
