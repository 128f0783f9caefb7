//! The guard around every router: whatever goes wrong, the answer is a problem.

use std::any::Any;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, timeout_at};
use tower_http::catch_panic::CatchPanicLayer;

use super::body::whole_body;
use crate::problem::{Code, Problem};

/// The longest path and query, in bytes.
pub const MAX_URI: usize = 8 * 1024;

/// The most bytes of header names and values together.
pub const MAX_HEADERS: usize = 16 * 1024;

/// How long a request may take until its answer starts. Above the longest long poll (30 s).
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(40);

/// Wraps a complete router, last and once per listener: a router that is merged into it later is
/// not guarded, and axum does not merge two routers that both have a fallback.
///
/// Unknown routes and methods, panics, requests over the limits and requests that take too long
/// all answer with a problem. Handlers see bodies that have arrived whole and within
/// [`super::MAX_BODY`].
pub fn guarded(router: Router) -> Router {
    router
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn(guard))
        .layer(CatchPanicLayer::custom(after_panic))
}

async fn guard(request: Request, next: Next) -> Result<Response, Problem> {
    check_uri(request.uri())?;
    check_headers(request.headers())?;
    let deadline = Instant::now() + REQUEST_DEADLINE;
    let request = timeout_at(deadline, whole_body(request)).await;
    let request = request.unwrap_or_else(|_| Err(too_slow()))?;
    let response = timeout_at(deadline, next.run(request)).await;
    response.map_err(|_| no_answer())
}

fn check_uri(uri: &Uri) -> Result<(), Problem> {
    let length = uri.path_and_query().map_or(0, |shown| shown.as_str().len());
    if length > MAX_URI {
        let detail = format!("the address has more than {MAX_URI} bytes");
        return Err(Problem::new(Code::UriTooLong, detail));
    }
    Ok(())
}

fn check_headers(headers: &HeaderMap) -> Result<(), Problem> {
    let sizes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    if sizes.sum::<usize>() > MAX_HEADERS {
        let detail = format!("the headers have more than {MAX_HEADERS} bytes");
        return Err(Problem::new(Code::HeadersTooLarge, detail));
    }
    Ok(())
}

/// The client's fault: its body did not arrive.
fn too_slow() -> Problem {
    Problem::new(Code::RequestTimeout, "the request did not arrive in time")
}

/// Our fault, and one that passes. Logged here, because nobody else knows.
fn no_answer() -> Problem {
    tracing::error!(deadline = ?REQUEST_DEADLINE, "a request took too long to answer");
    Problem::unavailable("no answer in time")
}

async fn unknown_route() -> Problem {
    Problem::new(Code::NotFound, "there is no such route")
}

/// axum adds the `Allow` header.
async fn wrong_method(method: Method) -> Problem {
    let detail = format!("this route does not answer {method}");
    Problem::new(Code::MethodNotAllowed, detail)
}

/// The panic hook has logged it already, with its place; the client learns nothing of it.
fn after_panic(_: Box<dyn Any + Send>) -> Response {
    Problem::internal().into_response()
}
