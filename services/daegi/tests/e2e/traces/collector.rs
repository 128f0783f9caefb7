//! An OTLP/HTTP collector that keeps every request body.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use daegi_domain::{SpanId, TraceContext, TraceId};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

type Bodies = Arc<Mutex<Vec<Bytes>>>;

/// Stops when dropped.
pub(super) struct Collector {
    pub(super) url: String,
    bodies: Bodies,
    _serving: JoinSet<()>,
}

/// A span, and the service that sent it.
#[derive(Debug, Clone)]
pub(super) struct ReceivedSpan {
    service: String,
    span: Span,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let bodies = Bodies::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(bodies.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { url, bodies, _serving: serving }
    }

    pub(super) fn requests(&self) -> usize {
        self.bodies.lock().unwrap().len()
    }

    /// Returns the only span of this name. Panics unless this service sent it.
    pub(super) fn only(&self, name: &str, service: &str) -> ReceivedSpan {
        let all = self.spans();
        let named: Vec<_> = all.iter().filter(|received| received.span.name == name).collect();
        assert_eq!(named.len(), 1, "{name}: {all:?}");
        assert_eq!(named[0].service, service, "{name}");
        named[0].clone()
    }

    /// Whether a text occurs in any request body.
    pub(super) fn received_text(&self, text: &str) -> bool {
        let has = |body: &Bytes| body.windows(text.len()).any(|part| part == text.as_bytes());
        self.bodies.lock().unwrap().iter().any(has)
    }

    fn spans(&self) -> Vec<ReceivedSpan> {
        let bodies = self.bodies.lock().unwrap();
        let requests = bodies.iter().map(decoded);
        let resources = requests.flat_map(|request| request.resource_spans);
        resources
            .flat_map(|resource| {
                let attributes = resource.resource.unwrap().attributes;
                let service = attribute(&attributes, "service.name").unwrap();
                let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                spans.map(move |span| ReceivedSpan { service: service.clone(), span })
            })
            .collect()
    }
}

async fn take(State(bodies): State<Bodies>, headers: HeaderMap, body: Bytes) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    bodies.lock().unwrap().push(body);
    StatusCode::OK
}

fn decoded(body: &Bytes) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest::decode(&body[..]).unwrap()
}

impl ReceivedSpan {
    pub(super) fn trace(&self) -> TraceId {
        trace(&self.span.trace_id)
    }

    pub(super) fn id(&self) -> SpanId {
        span(&self.span.span_id)
    }

    pub(super) fn parent(&self) -> Option<SpanId> {
        let id = &self.span.parent_span_id;
        (!id.is_empty()).then(|| span(id))
    }

    pub(super) fn links(&self) -> Vec<TraceContext> {
        let links = self.span.links.iter().map(|link| TraceContext {
            trace: trace(&link.trace_id),
            span: span(&link.span_id),
            sampled: link.flags & 1 == 1,
        });
        links.collect()
    }

    pub(super) fn began(&self) -> u64 {
        self.span.start_time_unix_nano
    }

    pub(super) fn ended(&self) -> u64 {
        self.span.end_time_unix_nano
    }

    pub(super) fn attribute(&self, key: &str) -> Option<String> {
        attribute(&self.span.attributes, key)
    }
}

fn trace(id: &[u8]) -> TraceId {
    TraceId(u128::from_be_bytes(id.try_into().unwrap()))
}

fn span(id: &[u8]) -> SpanId {
    SpanId(u64::from_be_bytes(id.try_into().unwrap()))
}

fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|pair| pair.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}
