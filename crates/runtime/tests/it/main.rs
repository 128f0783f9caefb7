//! The runtime from outside: configuration, problems, serving, health, ending.

mod config;
mod extract;
mod guard;
mod health;
mod hostile;
mod secrets;
mod server;
mod shutdown;
mod support;
mod traces;
