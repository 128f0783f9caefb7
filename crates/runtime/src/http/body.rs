//! Bodies are buffered completely, or the request is rejected before its handler.
//!
//! All request bodies are small. Buffering them first means that no handler can forget the limit,
//! and that a client gets the rejection even while it is still sending.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;

use super::budget::{OverBudget, Reservation};
use super::limits::Refused;
use crate::problem::{Code, Problem};

/// Maximum size of a body in bytes, unless the route sets a limit.
pub const MAX_BODY: usize = 64 * 1024;

/// Maximum bytes of a rejected body that are read and discarded. Without reading them, a client
/// that still sends when the connection closes would get a TCP reset instead of the response.
const MAX_DISCARD: usize = 32 * 1024 * 1024;

/// How long a rejected body is read.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the request with its body in memory.
///
/// # Errors
/// A problem if the body is over `limit` or breaks off, or if `held` cannot cover it.
pub(super) async fn buffer_body(
    request: Request,
    limit: usize,
    held: &mut Reservation,
) -> Result<Request, Problem> {
    let (parts, mut body) = request.into_parts();
    let declared = declared_length(&parts.headers);
    let refused = match check(declared, limit, held) {
        Ok(()) => match collect(&mut body, declared, limit, held).await? {
            Ok(bytes) => return Ok(Request::from_parts(parts, Body::from(bytes))),
            Err(refused) => refused,
        },
        // A client that waits for `100 Continue` gets the response before it sends anything.
        Err(refused) if parts.headers.contains_key(EXPECT) => return Err(refused),
        Err(refused) => refused,
    };
    // The headers share hyper's read buffer and would keep it allocated while the body is read.
    drop(parts);
    discard(body).await;
    Err(refused)
}

/// Checks that a body of this length may be buffered.
fn check(length: usize, limit: usize, held: &mut Reservation) -> Result<(), Problem> {
    if length > limit {
        return Err(too_large(limit));
    }
    held.cover(length).map_err(|OverBudget| {
        Refused::Body.count();
        Problem::unavailable("too many large requests arrive at the same time, try again")
    })
}

/// Returns all bytes of the body. The inner error is a body over a limit, whose rest must be
/// discarded; the outer error is a body that broke off.
async fn collect(
    body: &mut Body,
    declared: usize,
    limit: usize,
    held: &mut Reservation,
) -> Result<Result<Bytes, Problem>, Problem> {
    let mut bytes = Vec::with_capacity(declared);
    while let Some(data) = next_data(body).await {
        let data = data.map_err(|_| Problem::invalid("the body broke off"))?;
        if let Err(refused) = check(bytes.len() + data.len(), limit, held) {
            return Ok(Err(refused));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Ok(bytes.into()))
}

async fn discard(mut body: Body) {
    let reading = async {
        let mut read = 0;
        while let Some(Ok(data)) = next_data(&mut body).await {
            read += data.len();
            if read > MAX_DISCARD {
                break;
            }
        }
    };
    // After the timeout the client may miss the response.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, reading).await;
}

/// Returns the next bytes; trailers count as none.
async fn next_data(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    let frame = body.frame().await?;
    Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

/// Returns the `Content-Length`; 0 for a chunked body.
fn declared_length(headers: &HeaderMap) -> usize {
    let declared = headers.get(CONTENT_LENGTH);
    declared.and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0)
}

fn too_large(limit: usize) -> Problem {
    let detail = match limit {
        0 => "this route takes no body".to_owned(),
        limit => format!("the body has more than {limit} bytes"),
    };
    Problem::new(Code::PayloadTooLarge, detail)
}
