use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// A port that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}, choose another address with --{option}")]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// The option that says where.
    pub option: &'static str,
    /// Why not.
    pub source: io::Error,
}

/// Listens on an address that `--option` chose.
///
/// # Errors
/// With address and option, because the bare error names neither.
pub async fn bind(address: SocketAddr, option: &'static str) -> Result<TcpListener, ListenError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| ListenError { address, option, source })
}
