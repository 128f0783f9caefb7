//! The public API of the runtime: configuration, problems, serving, health, shutdown.

mod config;
mod extract;
mod health;
mod hostile;
mod proxy_protocol;
mod secrets;
mod server;
mod service;
mod shutdown;
mod spans;
mod support;
