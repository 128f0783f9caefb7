//! Every admin call, with valid and invalid input.

mod access;
mod beacon;
mod console;
mod harness;
mod invitations;
mod items;
mod openapi;
mod operators;
mod overview;
mod policy;
mod settings;
mod store_unavailable;
