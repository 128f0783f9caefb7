//! A collector that keeps what it is sent: OTLP over HTTP, as the real ones take it.

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

/// Ends with the test.
pub(super) struct Collector {
    pub(super) url: String,
    bodies: Bodies,
    _serving: JoinSet<()>,
}

/// A span, and the service that sent it.
#[derive(Debug, Clone)]
pub(super) struct Heard {
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

    /// The one span of this name, which this service sent.
    pub(super) fn only(&self, name: &str, service: &str) -> Heard {
        let all = self.spans();
        let named: Vec<_> = all.iter().filter(|heard| heard.span.name == name).collect();
        assert_eq!(named.len(), 1, "{name}: {all:?}");
        assert_eq!(named[0].service, service, "{name}");
        named[0].clone()
    }

    /// Whether a text is anywhere in what was sent.
    pub(super) fn has_heard(&self, text: &str) -> bool {
        let has = |body: &Bytes| body.windows(text.len()).any(|part| part == text.as_bytes());
        self.bodies.lock().unwrap().iter().any(has)
    }

    fn spans(&self) -> Vec<Heard> {
        let bodies = self.bodies.lock().unwrap();
        let requests = bodies.iter().map(decoded);
        let resources = requests.flat_map(|request| request.resource_spans);
        resources
            .flat_map(|resource| {
                let about = resource.resource.unwrap().attributes;
                let service = said(&about, "service.name").unwrap();
                let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                spans.map(move |span| Heard { service: service.clone(), span })
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

impl Heard {
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

    pub(super) fn said(&self, key: &str) -> Option<String> {
        said(&self.span.attributes, key)
    }
}

fn trace(id: &[u8]) -> TraceId {
    TraceId(u128::from_be_bytes(id.try_into().unwrap()))
}

fn span(id: &[u8]) -> SpanId {
    SpanId(u64::from_be_bytes(id.try_into().unwrap()))
}

fn said(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}
