//! The api as a process: real listeners, the same entry point as `main`.

use std::net::SocketAddr;

use daegi_api::Listeners;
use daegi_runtime::{Config, Role, Shutdown};
use daegi_testkit::eventually;

use crate::harness::TEST_TIMEOUT;

/// Two listeners on free ports.
pub(crate) async fn listeners() -> (Listeners, SocketAddr, SocketAddr) {
    let any_port = ["--public-addr", "127.0.0.1:0", "--internal-addr", "127.0.0.1:0"];
    let listeners = Listeners::bind(&config(&any_port)).await.unwrap();
    let public = listeners.public.as_ref().unwrap().local_addr().unwrap();
    let internal = listeners.internal.local_addr().unwrap();
    (listeners, public, internal)
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
async fn a_process_serves_both_listeners_until_the_shutdown() {
    let (listeners, public, internal) = listeners().await;
    let shutdown = Shutdown::new();
    let running = daegi_api::run(config(&[]), listeners, shutdown.clone());
    let testing = async {
        let ready = async || status(format!("http://{internal}/readyz")).await == 200;
        eventually(TEST_TIMEOUT, "ready", ready).await;
        assert_eq!(status(format!("http://{internal}/livez")).await, 200);
        assert_eq!(status(format!("http://{public}/docs")).await, 200);
        assert_eq!(status(format!("http://{public}/readyz")).await, 404, "health is not public");
        assert_eq!(status(format!("http://{public}/api/v1/item/x/waiting-queue")).await, 404);
        shutdown.stop_now();
    };
    let (ended, ()) = tokio::join!(running, testing);
    ended.unwrap();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_reported() {
    let (_listeners, public, _) = listeners().await;
    let config = config(&["--public-addr", &public.to_string(), "--internal-addr", "127.0.0.1:0"]);
    let error = Listeners::bind(&config).await.unwrap_err().to_string();
    let expected = format!("cannot listen on {public}, choose another address with --public-addr");
    assert_eq!(error, expected);
}
