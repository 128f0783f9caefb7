//! Connections of proxies that speak the PROXY protocol, in bytes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use axum::{Extension, Router};
use daegi_runtime::Shutdown;
use daegi_runtime::http::{ForwardedHeader, HttpService, Limits, Peer, TrustedProxies};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::served;

const TEST_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
const V1: &[u8] = b"PROXY TCP4 203.0.113.9 10.0.0.1 4711 443\r\n";
const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Serves the address of the peer behind proxies in these networks.
async fn behind(networks: &str, shutdown: &Shutdown) -> SocketAddr {
    let networks = TrustedProxies::parse_networks(networks).unwrap();
    let proxies = TrustedProxies::new(networks, ForwardedHeader::XForwardedFor);
    let header_read = Duration::from_millis(300);
    let limits = Limits { proxies: Some(Arc::new(proxies)), header_read, ..Limits::default() };
    let peer = async |Extension(Peer(peer)): Extension<Peer>| peer.to_string();
    let service = HttpService::new(Router::new().route("/", get(peer)));
    served(service, limits, shutdown).await.unwrap()
}

/// Sends bytes in parts, and returns the reply until the server closes the connection.
async fn send(address: SocketAddr, parts: &[&[u8]]) -> String {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.set_nodelay(true).unwrap();
    let mut reply = Vec::new();
    for part in parts {
        // The server may have closed the connection.
        if connection.write_all(part).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    // A reset counts as closed.
    let _ = connection.read_to_end(&mut reply).await;
    String::from_utf8(reply).unwrap()
}

fn v2(version: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [V2_SIGNATURE, &[version, family], &length, rest].concat()
}

/// The addresses of 203.0.113.9:4711 and 10.0.0.1:443, and an extension.
const IPV4: [u8; 20] =
    [203, 0, 113, 9, 10, 0, 0, 1, 0x12, 0x67, 0x01, 0xbb, 0x04, 0, 5, 0, 0, 0, 0, 0];

#[tokio::test]
async fn the_peer_is_the_client_that_a_trusted_proxy_names() {
    let shutdown = Shutdown::new();
    let address = behind("127.0.0.1", &shutdown).await;
    let mut ipv6 = [0; 36];
    ipv6[..16].copy_from_slice(&"2001:db8::9".parse::<std::net::Ipv6Addr>().unwrap().octets());
    ipv6[32..34].copy_from_slice(&4711_u16.to_be_bytes());
    let whole = [V1, REQUEST].concat();
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    for (parts, client) in [
        (vec![V1, REQUEST], "203.0.113.9:4711"),
        (vec![&whole], "203.0.113.9:4711"),
        (bytes, "203.0.113.9:4711"),
        (vec![b"PROXY TCP6 2001:db8::9 ::1 4711 443\r\n", REQUEST], "[2001:db8::9]:4711"),
        (vec![&v2(0x21, 0x11, &IPV4), REQUEST], "203.0.113.9:4711"),
        (vec![&[&v2(0x21, 0x11, &IPV4), REQUEST].concat()], "203.0.113.9:4711"),
        (vec![&v2(0x21, 0x21, &ipv6), REQUEST], "[2001:db8::9]:4711"),
    ] {
        let reply = send(address, &parts).await;
        assert!(reply.starts_with("HTTP/1.1 200 ") && reply.ends_with(client), "{client}: {reply}");
    }
    for known_none in [&b"PROXY UNKNOWN\r\n"[..], &v2(0x20, 0, b""), &v2(0x21, 0, b"abc")] {
        let reply = send(address, &[known_none, REQUEST]).await;
        assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("127.0.0.1:"), "{reply}");
    }
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_trusted_proxy_without_a_valid_header_gets_no_reply() {
    let shutdown = Shutdown::new();
    let address = behind("127.0.0.0/8", &shutdown).await;
    let long = [b"PROXY TCP4 ", &[b'1'; 200][..]].concat();
    let too_long = v2(0x21, 0x11, &[0; 4097]);
    for parts in [
        vec![REQUEST],
        vec![&V1[..20], b"\r\n", REQUEST],
        vec![&long, REQUEST],
        vec![&too_long, REQUEST],
        vec![&v2(0x31, 0x11, &IPV4), REQUEST],
        vec![&v2(0x21, 0x11, &IPV4[..8]), REQUEST],
        // Incomplete: the deadline ends them.
        vec![],
        vec![b"PROXY"],
        vec![&V1[..30]],
        vec![&v2(0x21, 0x11, &IPV4)[..20]],
    ] {
        assert_eq!(send(address, &parts).await, "", "{parts:?}");
    }
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_header_of_another_peer_closes_the_connection_and_names_no_client() {
    let shutdown = Shutdown::new();
    let address = behind("10.0.0.0/8", &shutdown).await;
    for header in [V1, &v2(0x21, 0x11, &IPV4)] {
        let reply = send(address, &[header, REQUEST]).await;
        assert!(!reply.contains("200 OK") && !reply.contains("203.0.113.9"), "{reply}");
    }
    let reply = send(address, &[REQUEST]).await;
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("127.0.0.1:"), "{reply}");
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

/// A connection that waits for its header does not delay the shutdown.
#[tokio::test]
async fn a_shutdown_ends_connections_without_a_header() {
    let shutdown = Shutdown::new();
    let networks = TrustedProxies::parse_networks("127.0.0.1").unwrap();
    let proxies = TrustedProxies::new(networks, ForwardedHeader::XForwardedFor);
    let limits = Limits { proxies: Some(Arc::new(proxies)), ..Limits::default() };
    let address = served(HttpService::new(Router::new()), limits, &shutdown).await.unwrap();
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(b"PROXY").await.unwrap();
    shutdown.stop_now();
    let mut reply = Vec::new();
    let _ = connection.read_to_end(&mut reply).await;
    assert_eq!(reply, b"");
    shutdown.wait(Duration::from_secs(2)).await.unwrap();
}
