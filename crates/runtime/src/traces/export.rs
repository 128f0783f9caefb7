//! How spans leave the process: in batches, one request at a time, to a collector that may be away.

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
use crate::config::Collector;
use crate::process::replica_name;

/// The most spans of one request.
const MOST: usize = 512;

/// How long the first span of a batch waits for others.
const PACE: Duration = Duration::from_secs(1);

/// How long a collector has to answer, and how long once the process ends.
const PATIENCE: Duration = Duration::from_secs(5);
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// The longest pause after a collector that failed again and again.
const LONGEST: Duration = Duration::from_secs(30);

/// Sends what is in the queue.
pub(super) struct Export {
    http: Client<HttpConnector, Full<Bytes>>,
    url: Uri,
    resource: Resource,
    spans: mpsc::Receiver<Span>,
    sent: Counter,
    lost: Counter,
}

/// A collector that is away, told once, and asked more and more rarely.
#[derive(Default)]
struct Outage {
    pause: Duration,
}

impl Outage {
    /// How long to leave it alone.
    fn met(&mut self, reason: &str) -> Duration {
        if self.pause.is_zero() {
            tracing::warn!(reason, "the collector takes no spans, they are lost");
        }
        self.pause = (self.pause * 2).clamp(PACE, LONGEST);
        self.pause
    }

    fn over(&mut self) {
        if !std::mem::take(&mut self.pause).is_zero() {
            tracing::info!("the collector takes spans again");
        }
    }
}

impl Export {
    pub(super) fn new(collector: &Collector, service: &str, spans: mpsc::Receiver<Span>) -> Self {
        Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            url: collector.traces().clone(),
            resource: resource(service),
            spans,
            // From the start, so that none can be told from nobody knows.
            sent: counter!(SPANS, "result" => "sent"),
            lost: counter!(SPANS, "result" => "lost"),
        }
    }

    /// Sends until nobody can make spans any more. When the process ends that is soon; whoever
    /// holds on for longer than the drain is not waited for: the process would not, either.
    pub(super) async fn run(mut self, stop: CancellationToken, drain: Duration) {
        let overdue = async {
            stop.cancelled().await;
            tokio::time::sleep(drain + LAST_PATIENCE).await;
        };
        tokio::select! {
            () = self.deliver(&stop) => {}
            () = overdue => {}
        }
    }

    async fn deliver(&mut self, stop: &CancellationToken) {
        let (mut batch, mut outage) = (Vec::new(), Outage::default());
        while self.gather(&mut batch, stop).await {
            let spans = batch.len() as u64;
            let Err(reason) = self.send(std::mem::take(&mut batch), stop).await else {
                self.sent.increment(spans);
                outage.over();
                continue;
            };
            self.lost.increment(spans);
            let pause = outage.met(&reason);
            if stop.is_cancelled() {
                return self.lose_the_rest();
            }
            stop.run_until_cancelled(tokio::time::sleep(pause)).await;
        }
    }

    /// Fills a batch. False when nobody can make spans any more and all are sent.
    async fn gather(&mut self, batch: &mut Vec<Span>, stop: &CancellationToken) -> bool {
        if self.spans.recv_many(batch, MOST).await == 0 {
            return false;
        }
        if batch.len() < MOST {
            stop.run_until_cancelled(tokio::time::sleep(PACE)).await;
        }
        while batch.len() < MOST
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
        let asking = async {
            let answer = self.http.request(request).await.map_err(|error| error.to_string())?;
            let status = answer.status();
            // Read to its end, so that the connection can be used again.
            let _ = answer.into_body().collect().await;
            if status.is_success() { Ok(()) } else { Err(format!("it answers {status}")) }
        };
        let patience = async {
            stop.run_until_cancelled(tokio::time::sleep(PATIENCE - LAST_PATIENCE)).await;
            tokio::time::sleep(LAST_PATIENCE).await;
        };
        tokio::select! {
            answer = asking => answer,
            () = patience => Err("it does not answer in time".to_owned()),
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

    fn lose_the_rest(&mut self) {
        while self.spans.try_recv().is_ok() {
            self.lost.increment(1);
        }
    }
}

/// Which process speaks.
fn resource(service: &str) -> Resource {
    let said = [
        ("service.name", service.to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", replica_name()),
    ];
    let attributes = said.map(|(key, text)| attribute(key, Value::StringValue(text)));
    Resource { attributes: attributes.into(), ..Default::default() }
}
