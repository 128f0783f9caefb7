//! axum's extractors with problems as rejections.

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequest, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;

use crate::problem::{Code, Problem};

/// A JSON body. As `Option<JsonBody<T>>` the body may be empty.
#[derive(Debug, Clone, Copy)]
pub struct JsonBody<T>(pub T);

/// The query. A parameter that may be repeated needs `Vec<(String, String)>`.
#[derive(Debug, Clone, Copy)]
pub struct QueryParams<T>(pub T);

/// The path parameters of a route.
#[derive(Debug, Clone, Copy)]
pub struct PathParams<T>(pub T);

impl<T, S> FromRequest<S> for JsonBody<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = <Option<Self> as FromRequest<S>>::from_request(request, state).await?;
        body.ok_or_else(|| Problem::invalid("the body is empty, JSON expected"))
    }
}

impl<T, S> OptionalFromRequest<S> for JsonBody<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, Problem> {
        let is_json = is_json(request.headers());
        let bytes = read(request, state).await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if !is_json {
            let detail = "the content type must be application/json";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        serde_json::from_slice(&bytes)
            .map(|body| Some(Self(body)))
            .map_err(|error| json_error(&error))
    }
}

impl<T, S> FromRequestParts<S> for QueryParams<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = Query::try_from_uri(&parts.uri);
        let Query(params) = query.map_err(|error| Problem::invalid(error.body_text()))?;
        Ok(Self(params))
    }
}

impl<T, S> FromRequestParts<S> for PathParams<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        let Path(params) = path.map_err(|error| bad_path(&error, parts))?;
        Ok(Self(params))
    }
}

/// Reads the body. Inside [`super::HttpService`] it is small and complete; elsewhere axum's limit
/// applies.
async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    let bytes = Bytes::from_request(request, state).await;
    bytes.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(Code::PayloadTooLarge, "the body is too large")
        }
        _ => Problem::invalid("the body broke off"),
    })
}

/// Returns whether the content type is `application/json` or `application/*+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = declared.and_then(|value| value.split(';').next()).unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn json_error(error: &serde_json::Error) -> Problem {
    if error.is_data() {
        Problem::invalid(format!("the body does not fit: {error}"))
    } else {
        Problem::invalid(format!("the body is not JSON: {error}"))
    }
}

/// Maps a rejected path to a problem: 500 for a handler that extracts parameters its route does not
/// have, because that is a bug, otherwise 400.
fn bad_path(error: &PathRejection, parts: &Parts) -> Problem {
    if error.status().is_server_error() {
        let (component, method) = ("http", &parts.method);
        tracing::error!(component, %method, %error, "handler extracts parameters its route does not have");
        return Problem::internal();
    }
    Problem::invalid(error.body_text())
}
