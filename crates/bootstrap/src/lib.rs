//! Startup of all services.
//!
//! 1. [`Listeners::bind`] binds the addresses first, so that a port in use is reported immediately.
//! 2. [`serve_until_open`] serves health, and 503 for everything else, while it opens the store.
//!    While the store is unreachable, it retries, and the process is alive but not ready.
//! 3. The service builds its routers from the [`ServiceContext`], and [`Server::replace`] serves them
//!    without closing a connection.
//! 4. [`Server::run`] serves until the shutdown and drains.

mod context;
mod listeners;

pub use context::{ServiceContext, serve_until_open};
pub use listeners::{Listeners, Server, Services};
