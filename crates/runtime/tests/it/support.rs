//! Helpers that several tests share.

use std::net::SocketAddr;

use anyhow::Context;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, Response};
use daegi_runtime::http::{HttpService, Limits, serve};
use daegi_runtime::{Config, ConfigError, Problem, Role, Shutdown};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// 32 distinctive bytes, so that a leak is found.
pub(crate) const SECRET_HEX: &str =
    "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";

/// The example key of RFC 8410.
pub(crate) const PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
    -----END PRIVATE KEY-----\n";

/// Parses a configuration that should run.
pub(crate) fn parse(
    role: Role,
    args: &[&str],
    env: &[(&str, &str)],
) -> Result<Config, ConfigError> {
    let args = args.iter().map(ToString::to_string);
    let env = env.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    let parsed = Config::parse(role, args, env)?;
    Ok(parsed.into_config().unwrap_or_else(|| panic!("only shows a text")))
}

/// Returns the error of an invalid configuration.
pub(crate) fn config_error(role: Role, args: &[&str], env: &[(&str, &str)]) -> String {
    match parse(role, args, env) {
        Ok(config) => panic!("accepted: {config:?}"),
        Err(error) => error.to_string(),
    }
}

/// Sends a request through a router without a network.
pub(crate) async fn call(router: HttpService, request: Request<Body>) -> Response<Body> {
    router.handle(request).await
}

/// A request without a body.
pub(crate) fn get(uri: &str) -> anyhow::Result<Request<Body>> {
    Ok(Request::get(uri).body(Body::empty())?)
}

/// Reads a response that must be a problem whose members match its status.
pub(crate) async fn problem(response: Response<Body>) -> anyhow::Result<Problem> {
    let status = response.status();
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    let body = response.into_body().collect().await?.to_bytes();
    let problem: Problem = serde_json::from_slice(&body)?;
    assert_eq!(problem.status, status.as_u16());
    assert_eq!(problem.kind, format!("/docs#{}", problem.code));
    Ok(problem)
}

/// Serves a router on a free port.
pub(crate) async fn served(
    router: HttpService,
    limits: Limits,
    shutdown: &Shutdown,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = serve(listener, router, limits, shutdown.clone());
    shutdown.spawn("http", serving);
    Ok(address)
}

/// Sends bytes, then reads until the server closes the connection.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.context("the answer")?;
    Ok(answer)
}
