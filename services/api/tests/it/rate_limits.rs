//! Limits per source, user and ticket.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use daegi_runtime::config::Rates;
use daegi_runtime::http::{ForwardedHeader, Limits, Peer, TrustedProxies, serve};
use daegi_runtime::rate_limit::Rate;
use daegi_testkit::{ChildProcess, eventually, free_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::harness::{Harness, TEST_TIMEOUT, TestResponse, line, request, ticket};

const CAMPUS: &str = "203.0.113.9";

fn rate(text: &str) -> Option<Rate> {
    Rate::parse(text).unwrap()
}

/// Sends a request from an address.
async fn call(
    harness: &Harness,
    source: &str,
    (method, uri): (Method, &str),
    headers: &[(&str, &str)],
) -> TestResponse {
    let mut request = request(method, uri, headers, "");
    let peer = SocketAddr::new(source.parse().unwrap(), 4711);
    request.extensions_mut().insert(Peer(peer));
    harness.call(request).await
}

async fn join(harness: &Harness, source: &str, user: &str) -> TestResponse {
    call(harness, source, (Method::POST, &line("concert")), &[("user-id", user)]).await
}

#[tokio::test(start_paused = true)]
async fn joins_of_one_source_are_limited_without_a_store_call_and_others_are_not() {
    let rates = Rates { source_joins: rate("1:3"), ..Rates::default() };
    let harness = Harness::with_rates("concert", rates).await;
    for user in ["a", "b", "c"] {
        assert_eq!(join(&harness, CAMPUS, user).await.status, 201);
    }
    let before = harness.store.calls("join");
    let refused = join(&harness, CAMPUS, "d").await;
    refused.assert_problem(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.json()["detail"], "too many joins from your network, try again in 1 s");
    assert_eq!(harness.store.calls("join"), before);
    let form = call(&harness, CAMPUS, (Method::POST, "/wait/concert"), &[]).await;
    let shown = (form.status.as_u16(), form.header("location"));
    assert_eq!(shown, (303, "/wait/concert?refused=RATE_LIMITED"), "a page, not JSON");
    assert_eq!(join(&harness, "203.0.113.10", "e").await.status, 201, "another source");
    let token = harness.token("concert", "a").await;
    let poll = ticket("concert", &token);
    let polled = call(&harness, CAMPUS, (Method::GET, &poll), &[]).await;
    assert_eq!(polled.status, 200, "polls have a limit of their own");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(join(&harness, CAMPUS, "d").await.status, 201);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn clients_behind_a_trusted_proxy_are_sources_of_their_own() {
    let rates = Rates { source_joins: rate("1:1"), ..Rates::default() };
    let networks = TrustedProxies::parse_networks("10.0.0.0/8").unwrap();
    let proxies = TrustedProxies::new(networks, ForwardedHeader::XForwardedFor);
    let harness = Harness::behind_proxies("concert", rates, proxies).await;
    let join = async |peer: &str, client: &str, user: &str| {
        let headers = [("user-id", user), ("x-forwarded-for", client)];
        call(&harness, peer, (Method::POST, &line("concert")), &headers).await.status.as_u16()
    };
    assert_eq!(join("10.0.0.1", CAMPUS, "a").await, 201);
    assert_eq!(join("10.0.0.2", CAMPUS, "b").await, 429, "through another proxy");
    assert_eq!(join("10.0.0.1", "1.2.3.4, 203.0.113.9", "b").await, 429, "an invented first hop");
    assert_eq!(join("10.0.0.1", "203.0.113.10", "b").await, 201);
    assert_eq!(join("198.51.100.1", "1.1.1.1", "c").await, 201);
    assert_eq!(join("198.51.100.1", "2.2.2.2", "d").await, 429, "not a proxy, so not believed");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_user_and_one_ticket_are_limited_wherever_they_come_from() {
    let rates = Rates { user_joins: rate("1:2"), ticket_polls: rate("1:2"), ..Rates::default() };
    let harness = Harness::with_rates("concert", rates).await;
    let sources = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    let mut joins = Vec::new();
    for source in sources {
        joins.push(join(&harness, source, "kim").await.status.as_u16());
    }
    assert_eq!(joins, [201, 200, 429]);
    let [token, other] =
        [harness.token("concert", "lee").await, harness.token("concert", "park").await];
    let bearer = format!("Bearer {token}");
    let (named, mine) = (ticket("concert", &token), ticket("concert", "me"));
    let mut polls = Vec::new();
    for (source, uri) in sources.into_iter().zip([&named, &mine, &named]) {
        let headers = [("authorization", bearer.as_str())];
        polls.push(call(&harness, source, (Method::GET, uri), &headers).await.status.as_u16());
    }
    assert_eq!(polls, [200, 200, 429]);
    assert_eq!(harness.poll("concert", &other).await.status, 200);
    harness.end().await;
}

/// HAProxy, a real proxy, names its clients in both versions of the PROXY protocol.
#[tokio::test]
async fn a_client_that_a_proxy_names_in_the_proxy_protocol_is_a_source_of_its_own() {
    let Some(haproxy) = daegi_testkit::tool_or_skip("haproxy") else { return };
    let rates = Rates { source_joins: rate("1:1"), ..Rates::default() };
    let harness = Harness::with_rates("concert", rates).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let networks = TrustedProxies::parse_networks("127.0.0.1").unwrap();
    let proxies = Arc::new(TrustedProxies::new(networks, ForwardedHeader::XForwardedFor));
    let limits = Limits { proxies: Some(proxies), ..Limits::default() };
    let serving = serve(listener, harness.public.clone(), limits, harness.shutdown.clone());
    harness.shutdown.tracker().spawn(serving);

    let versions = [("send-proxy", free_port()), ("send-proxy-v2", free_port())];
    let frontends = versions.map(|(version, port)| {
        format!("listen {version}\n bind 127.0.0.1:{port}\n server api {address} {version}\n")
    });
    let timeouts = "timeout connect 5s\n timeout client 5s\n timeout server 5s";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        format!("defaults\n mode tcp\n {timeouts}\n{}", frontends.concat()),
    )
    .unwrap();
    let mut command = Command::new(haproxy);
    command.arg("-db").arg("-f").arg(file.path()).stderr(Stdio::null());
    let _child = ChildProcess::from(command.spawn().unwrap());
    for (version, port) in versions {
        // Addresses of loopback, others for each version. All requests of a client are in one write, so that they meet
        // the same moment.
        let [busy, other] = [1, 2].map(|host| format!("127.0.{}.{host}", version.len()));
        for (client, joins, is_limited) in [(busy, 20, true), (other, 1, false)] {
            let joined = || join_through(&client, port, joins);
            let replies = eventually(TEST_TIMEOUT, "the proxy accepts connections", joined).await;
            assert!(replies.starts_with("HTTP/1.1 20"), "{version}: {replies}");
            assert_eq!(replies.contains("HTTP/1.1 429"), is_limited, "{version}: {replies}");
        }
    }
    harness.end().await;
}

/// Joins some times from a local address. Returns `None` if the proxy does not accept the connection.
async fn join_through(client: &str, port: u16, joins: usize) -> Option<String> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(client.parse().unwrap(), 0)).unwrap();
    let mut connection = socket.connect(([127, 0, 0, 1], port).into()).await.ok()?;
    let line = line("concert");
    let head = format!("POST {line} HTTP/1.1\r\nhost: localhost\r\nuser-id: kim\r\n");
    let last = format!("{head}content-length: 0\r\nconnection: close\r\n\r\n");
    let requests = format!("{head}content-length: 0\r\n\r\n").repeat(joins - 1) + &last;
    connection.write_all(requests.as_bytes()).await.ok()?;
    let mut reply = String::new();
    connection.read_to_string(&mut reply).await.ok()?;
    Some(reply)
}

/// The address of a real connection counts. All requests are in one write, so that they meet the same moment.
#[tokio::test]
async fn a_listener_counts_the_address_of_the_connection() {
    let rates = Rates { source_polls: rate("1:1"), ..Rates::default() };
    let harness = Harness::with_rates("concert", rates).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving =
        serve(listener, harness.public.clone(), Limits::default(), harness.shutdown.clone());
    harness.shutdown.tracker().spawn(serving);
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {} HTTP/1.1\r\nhost: localhost\r\n", line("concert"));
    let last = format!("{request}connection: close\r\n\r\n");
    connection.write_all(format!("{request}\r\n").repeat(20).as_bytes()).await.unwrap();
    connection.write_all(last.as_bytes()).await.unwrap();
    let mut replies = String::new();
    connection.read_to_string(&mut replies).await.unwrap();
    assert!(replies.starts_with("HTTP/1.1 200"), "{replies}");
    assert!(replies.contains("HTTP/1.1 429"), "{replies}");
    harness.end().await;
}
