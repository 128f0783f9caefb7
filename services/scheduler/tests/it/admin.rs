//! Every admin call, with valid and invalid input.

mod access;
mod beacon;
mod block_list;
mod console;
mod harness;
mod history;
mod invitations;
mod items;
mod openapi;
mod operators;
mod overview;
mod policy;
mod settings;
mod simulate;
mod store_unavailable;
