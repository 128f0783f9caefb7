//! A failing collector must not affect requests.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::time::Duration;

use axum::http::HeaderMap;
use daegi_domain::{ItemId, Lane, Number, TicketStep};
use daegi_runtime::spans::{RequestStart, SPANS, TracedCall};
use daegi_runtime::{Role, Shutdown, Tracer, telemetry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::support::parse;

/// More than the queue holds.
const MANY: u64 = 10_000;

fn tracer(endpoint: &str, shutdown: &Shutdown) -> Tracer {
    let args = ["--otlp-endpoint", endpoint, "--trace-ratio", "1"];
    let config = parse(Role::AllInOne, &args, &[]).unwrap();
    telemetry::init(&config);
    Tracer::start(&config, shutdown)
}

fn join(tracer: &Tracer, start: &RequestStart, number: u64) {
    tracer.record_call(
        TracedCall::Join,
        &ItemId::parse("concert").unwrap(),
        Lane::STANDARD,
        Number(number),
        start,
    );
}

/// How many spans had this result, in all tests of this process.
fn spans(result: &str) -> u64 {
    let text = telemetry::render();
    let name = format!("{SPANS}{{result=\"{result}\"}} ");
    let count = text.lines().find_map(|line| line.strip_prefix(&name));
    count.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn without_a_collector_tracing_is_off() {
    let (tracer, item) = (Tracer::default(), ItemId::parse("concert").unwrap());
    assert!(!tracer.is_on());
    assert!(tracer.begin(&HeaderMap::new()).is_none());
    assert!(tracer.context(TicketStep::Admit, &item, Lane::STANDARD, Number(1)).is_none());
    assert!(tracer.step(TicketStep::Admit, &item, Lane::STANDARD, Number(1), 0).is_none());
}

#[tokio::test]
async fn no_request_waits_for_an_unavailable_collector() {
    let (shutdown, listener) = (Shutdown::new(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let tracer = tracer(&endpoint, &shutdown);
    let start = tracer.begin(&HeaderMap::new()).unwrap();
    // Nothing is exported meanwhile, because there is no await in between and one thread.
    (0..MANY).for_each(|number| join(&tracer, &start, number));
    let dropped = spans("dropped");
    assert!((1..MANY).contains(&dropped), "{dropped}");
    drop(tracer);
    shutdown.stop_now();
    shutdown.wait(Duration::from_secs(5)).await.unwrap();
    assert!(spans("lost") >= MANY - dropped, "all that was not dropped");
}

#[tokio::test]
async fn a_silent_collector_does_not_delay_the_shutdown() {
    let shutdown = Shutdown::new();
    // Connections are accepted and never read.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tracer = tracer(&format!("http://{}", silent.local_addr().unwrap()), &shutdown);
    join(&tracer, &tracer.begin(&HeaderMap::new()).unwrap(), 1);
    drop(tracer);
    shutdown.stop_now();
    shutdown.wait(Duration::from_secs(4)).await.unwrap();
}

#[tokio::test]
async fn spans_are_sent_over_tls_with_the_headers_of_the_file() {
    let shutdown = Shutdown::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let tls = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .unwrap();
    let (ca, headers) =
        (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(ca.path(), certified.cert.pem()).unwrap();
    std::fs::write(headers.path(), "authorization=Bearer%20secret\n").unwrap();
    let endpoint = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let args = [
        "--otlp-endpoint",
        &endpoint,
        "--trace-ratio=1",
        "--otlp-headers=x-team=tickets",
        "--otlp-headers-file",
        headers.path().to_str().unwrap(),
        "--otlp-ca",
        ca.path().to_str().unwrap(),
    ];
    let config = parse(Role::AllInOne, &args, &[]).unwrap();
    let tracer = Tracer::start(&config, &shutdown);
    join(&tracer, &tracer.begin(&HeaderMap::new()).unwrap(), 1);

    let (connection, _) = listener.accept().await.unwrap();
    let mut connection =
        TlsAcceptor::from(std::sync::Arc::new(tls)).accept(connection).await.unwrap();
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        connection.read_exact(&mut byte).await.unwrap();
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap();
    assert!(request.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{request}");
    for line in
        ["authorization: Bearer secret", "x-team: tickets", "content-type: application/x-protobuf"]
    {
        assert!(request.contains(line), "{request}");
    }
    connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    connection.flush().await.unwrap();
    drop(tracer);
    shutdown.stop_now();
    shutdown.wait(Duration::from_secs(5)).await.unwrap();
}
