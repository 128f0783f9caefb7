//! The service around every router: every failure is answered with a problem.

use std::any::Any;
use std::future::{Ready, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::future::{BoxFuture, CatchUnwind, Either, UnwrapOrElse};
use futures_util::{FutureExt, TryFutureExt};
use tokio::time::Instant;
use tower::Service;

use super::body::{MAX_BODY, buffer_body};
use super::connection::{Client, Peer};
use super::cors::{CorsOrigins, is_preflight, permit, preflight};
use super::fast_path::{FastPath, FastResponse, Filter, RequestHead};
use crate::problem::{Code, Problem};

/// Maximum length of path and query, in bytes.
pub const MAX_URI: usize = 8 * 1024;

/// Maximum size of all header names and values together, in bytes.
pub const MAX_HEADERS: usize = 16 * 1024;

/// How long a request may take until its response starts. Above the longest long poll (30 s).
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(40);

/// A complete router with limits, timeouts and panic handling.
///
/// These are not layers of the router, because each layer costs a box and a copy of every route per
/// request, together as much as a poll.
#[derive(Debug, Clone)]
pub struct HttpService {
    router: Router,
    filter: Option<Filter>,
    fast_path: Option<FastPath>,
    cors: CorsOrigins,
    body_limit: BodyLimit,
}

/// Maximum size of a body in bytes, by method and path.
pub type BodyLimit = fn(&Method, &str) -> usize;

/// A response that is ready, or the future of one. The future is boxed, because the server reserves
/// its size for every open connection and most responses are ready immediately.
pub(super) type ResponseFuture<'a> = Either<Ready<Response>, CatchPanic<'a>>;

/// A response, or a problem if its handler panics. The panic hook has logged the location; the
/// client gets no details.
type CatchPanic<'a> =
    UnwrapOrElse<CatchUnwind<AssertUnwindSafe<BoxFuture<'a, Response>>>, PanicResponse>;
type PanicResponse = fn(Box<dyn Any + Send>) -> Response;

impl HttpService {
    /// Wraps a complete router, once per listener.
    ///
    /// Unknown routes and methods, panics, requests over the limits and requests that take too long
    /// are all answered with a problem. Handlers receive only complete bodies within the limit of
    /// their route.
    #[must_use]
    pub fn new(router: Router) -> Self {
        let router = router.fallback(unknown_route).method_not_allowed_fallback(wrong_method);
        let cors = CorsOrigins::default();
        Self { router, filter: None, fast_path: None, cors, body_limit: |_, _| MAX_BODY }
    }

    /// Sends every request to `refuse` first; its response is the answer if it returns one.
    #[must_use]
    pub fn with_filter(
        mut self,
        refuse: impl Fn(RequestHead<'_>) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        self.filter = Some(Filter::new(refuse));
        self
    }

    /// Offers every request without a body to `respond` before the router.
    #[must_use]
    pub fn with_fast_path(
        mut self,
        respond: impl Fn(RequestHead<'_>) -> Option<FastResponse> + Send + Sync + 'static,
    ) -> Self {
        self.fast_path = Some(FastPath::new(respond));
        self
    }

    /// Permits pages of these origins to read responses.
    #[must_use]
    pub fn with_cors(mut self, origins: CorsOrigins) -> Self {
        self.cors = origins;
        self
    }

    /// Sets the body limit of each route; without it every route accepts [`super::MAX_BODY`] bytes.
    /// A limit of 0 rejects every body.
    #[must_use]
    pub fn with_body_limit(mut self, limit: BodyLimit) -> Self {
        self.body_limit = limit;
        self
    }

    /// Handles a request that has no connection. Its source is its [`Peer`], if it has one. Never fails.
    pub async fn handle(&self, request: Request) -> Response {
        let peer = request.extensions().get::<Peer>().copied();
        self.start(request, &Client::unconnected(peer)).await
    }

    /// Handles one of the consecutive requests of a connection.
    pub(super) fn start<'a, B>(&self, request: Request<B>, client: &'a Client) -> ResponseFuture<'a>
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
    {
        if let Some(origin) = self.cors.permitted(request.headers()) {
            if is_preflight(&request) {
                return ready_response(preflight(&origin));
            }
            let answer = self.respond(request, client);
            return catch_panic(Box::pin(async move { permit(answer.await, &origin) }));
        }
        self.respond(request, client)
    }

    fn respond<'a, B>(&self, request: Request<B>, client: &'a Client) -> ResponseFuture<'a>
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
    {
        let respond = || self.fast_response(&request, client);
        match catch_unwind(AssertUnwindSafe(respond)) {
            Ok(Ok(Some(FastResponse::Ready(response)))) => ready_response(response),
            Ok(Ok(Some(FastResponse::Pending(answer)))) => catch_panic(answer),
            Ok(Ok(None)) => {
                let limit = (self.body_limit)(request.method(), request.uri().path());
                let request = request.map(Body::new);
                let answer = route(self.router.clone(), request, limit, client);
                catch_panic(Box::pin(async { answer.await.into_response() }))
            }
            Ok(Err(problem)) => ready_response(problem),
            Err(_) => ready_response(Problem::internal()),
        }
    }

    /// Returns the response of the filter or the fast path, if one of them takes the request; a problem if
    /// the request exceeds a limit.
    fn fast_response<B: HttpBody>(
        &self,
        request: &Request<B>,
        client: &Client,
    ) -> Result<Option<FastResponse>, Problem> {
        check_uri(request.uri())?;
        check_headers(request.headers())?;
        let head = RequestHead::new(request, client.peer());
        if let Some(refused) = self.filter.as_ref().and_then(|filter| filter.refuse(head)) {
            return Ok(Some(FastResponse::Ready(refused)));
        }
        let fast_path = self.fast_path.as_ref().filter(|_| request.body().is_end_stream());
        Ok(fast_path.and_then(|fast_path| fast_path.respond(head)))
    }
}

fn catch_panic(answer: BoxFuture<'_, Response>) -> ResponseFuture<'_> {
    let internal_error: PanicResponse = |_| Problem::internal().into_response();
    Either::Right(AssertUnwindSafe(answer).catch_unwind().unwrap_or_else(internal_error))
}

fn ready_response(response: impl IntoResponse) -> ResponseFuture<'static> {
    Either::Left(ready(response.into_response()))
}

async fn route(
    mut router: Router,
    mut request: Request,
    limit: usize,
    client: &Client,
) -> Result<Response, Problem> {
    let deadline = Instant::now() + REQUEST_DEADLINE;
    let mut held = None;
    if !request.body().is_end_stream() {
        let held = held.insert(client.intake.reserve_body());
        let whole = client.timer.timeout_at(deadline, buffer_body(request, limit, held)).await;
        request = whole.ok_or_else(request_timeout)??;
        client.intake.body_complete();
    }
    client.add_peer(&mut request);
    let method = request.method().clone();
    // A router is always ready.
    let answer = client.timer.timeout_at(deadline, router.call(request)).await;
    let Ok(response) = answer.ok_or_else(|| response_timeout(&method))?;
    Ok(response)
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

/// Returns the problem of a body that did not arrive before the deadline: 408, because the client
/// is at fault.
fn request_timeout() -> Problem {
    Problem::new(Code::RequestTimeout, "the request did not arrive in time")
}

/// Returns the problem of a handler that missed the deadline: 503, because a retry can succeed.
/// Logs it, because no other code detects it; without the path, because a path may contain a token.
fn response_timeout(method: &Method) -> Problem {
    let component = "http";
    tracing::error!(component, %method, deadline = ?REQUEST_DEADLINE, "request exceeded the response deadline");
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
