//! Binding of listeners.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// An address that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}, choose another address with --{option}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The option that sets the address.
    pub option: &'static str,
    /// The cause.
    pub source: io::Error,
}

/// Binds the address of `--option`.
///
/// # Errors
/// If the address cannot be bound, with address and option, because the I/O error names neither.
pub async fn bind(address: SocketAddr, option: &'static str) -> Result<TcpListener, BindError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| BindError { address, option, source })
}
