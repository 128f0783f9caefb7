//! The baseline: an axum handler that only returns JSON of a ticket's size.

use std::net::SocketAddr;

use axum::{Json, Router};
use clap::Args;
use daegi_domain::Eta;
use serde::Serialize;

/// Serves the baseline handler until the process is killed.
#[derive(Debug, Args)]
pub(crate) struct Baseline {
    #[arg(long)]
    addr: SocketAddr,
}

/// The fields of a ticket, serialized for each request as a ticket is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    item_id: &'static str,
    user_id: &'static str,
    token: &'static str,
    status: &'static str,
    position: u64,
    waiting_count: u64,
    line_state: &'static str,
    eta_seconds: Option<Eta>,
    poll_after_ms: u64,
    pass: Option<&'static str>,
    pass_expires_at: Option<&'static str>,
    entry_url: Option<&'static str>,
}

const RESPONSE: Response = Response {
    item_id: "big",
    user_id: "u000000000",
    token: "u000000000-big-6878a70f-3101-8000-8ef0-de86b3eaf66c",
    status: "WAITING",
    position: 123_456,
    waiting_count: 1_000_000,
    line_state: "OPEN",
    eta_seconds: Some(Eta { p10: 371, p50: 371, p90: 371 }),
    poll_after_ms: 4_621,
    pass: None,
    pass_expires_at: None,
    entry_url: None,
};

impl Baseline {
    pub(crate) async fn serve(self) -> anyhow::Result<()> {
        let listener = tokio::net::TcpListener::bind(self.addr).await?;
        let handler = async || Json(RESPONSE);
        Ok(axum::serve(listener, Router::new().fallback(handler)).await?)
    }
}
