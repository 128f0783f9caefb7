//! The api as a process of its own: real listeners, the same door as `main`.

use std::net::SocketAddr;

use daegi_api::Listeners;
use daegi_runtime::{Config, Role, Shutdown};
use daegi_testkit::eventually;
use tokio::net::TcpListener;

use crate::harness::SOON;

/// Two doors on free ports.
pub(crate) async fn listeners() -> (Listeners, SocketAddr, SocketAddr) {
    let public = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let internal = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (people, services) = (public.local_addr().unwrap(), internal.local_addr().unwrap());
    (Listeners { public, internal }, people, services)
}

/// The configuration of an all-in-one, whose secrets need not be given.
pub(crate) fn config(options: &[&str]) -> Config {
    let options = options.iter().map(ToString::to_string);
    Config::parse(Role::AllInOne, options, []).unwrap().into_config().unwrap()
}

pub(crate) async fn status(url: String) -> u16 {
    reqwest::get(url).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_process_serves_both_listeners_until_it_is_told_to_stop() {
    let (listeners, people, services) = listeners().await;
    let shutdown = Shutdown::new();
    let running = daegi_api::run(config(&[]), listeners, shutdown.clone());
    let asking = async {
        let ready = async || status(format!("http://{services}/readyz")).await == 200;
        eventually(SOON, "ready", ready).await;
        assert_eq!(status(format!("http://{services}/livez")).await, 200);
        assert_eq!(status(format!("http://{people}/docs")).await, 200);
        assert_eq!(status(format!("http://{people}/readyz")).await, 404, "health is not public");
        assert_eq!(status(format!("http://{people}/api/v1/item/x/waiting-queue")).await, 404);
        shutdown.now();
    };
    let (ended, ()) = tokio::join!(running, asking);
    ended.unwrap();
    shutdown.wait(SOON).await.unwrap();
}

#[tokio::test]
async fn a_taken_port_is_told_at_once() {
    let (_listeners, people, _) = listeners().await;
    let config = config(&["--public-addr", &people.to_string(), "--internal-addr", "127.0.0.1:0"]);
    let error = Listeners::bind(&config).await.unwrap_err().to_string();
    let expected = format!("cannot listen on {people}, choose another address with --public-addr");
    assert_eq!(error, expected);
}
