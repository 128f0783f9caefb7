//! Bodies arrive whole, or the request is refused before a handler sees it.
//!
//! Everything that clients send here is small. Reading it up front means that no handler can
//! forget the limit, and that a client is told so even while it is still sending.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;

use crate::problem::{Code, Problem};

/// The most bytes of a body.
pub const MAX_BODY: usize = 64 * 1024;

/// How much of a refused body is read and thrown away. A client that still sends when the
/// connection closes sees a reset instead of the answer, so we listen for a while.
const DISCARD_BYTES: usize = 32 * 1024 * 1024;

/// How long we listen to a refused body.
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// The same request with its body in memory.
///
/// # Errors
/// A problem if the body is over [`MAX_BODY`] or breaks off.
pub(super) async fn whole_body(request: Request) -> Result<Request, Problem> {
    let (parts, mut body) = request.into_parts();
    if declared_length(&parts.headers) > MAX_BODY as u64 {
        // A client that asks first is told before it sends anything.
        if !parts.headers.contains_key(EXPECT) {
            discard(body).await;
        }
        return Err(too_large());
    }
    match collect(&mut body).await? {
        Some(bytes) => Ok(Request::from_parts(parts, Body::from(bytes))),
        None => {
            discard(body).await;
            Err(too_large())
        }
    }
}

/// All bytes of the body, or `None` as soon as there are too many.
async fn collect(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    let mut bytes = Vec::new();
    while let Some(data) = next_data(body).await {
        let data = data.map_err(|_| Problem::invalid("the body broke off"))?;
        if bytes.len() + data.len() > MAX_BODY {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(bytes.into()))
}

async fn discard(mut body: Body) {
    let listening = async {
        let mut read = 0;
        while let Some(Ok(data)) = next_data(&mut body).await {
            read += data.len();
            if read > DISCARD_BYTES {
                break;
            }
        }
    };
    // Out of patience: the client may miss the answer, but we do not wait for it.
    let _ = tokio::time::timeout(DISCARD_TIME, listening).await;
}

/// The next bytes; trailers count as none.
async fn next_data(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    let frame = body.frame().await?;
    Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

fn declared_length(headers: &HeaderMap) -> u64 {
    let declared = headers.get(CONTENT_LENGTH);
    declared.and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0)
}

fn too_large() -> Problem {
    let detail = format!("the body has more than {MAX_BODY} bytes");
    Problem::new(Code::PayloadTooLarge, detail)
}
