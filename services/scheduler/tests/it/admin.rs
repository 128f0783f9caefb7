//! Every admin call, with every input an operator can get wrong.

mod access;
mod described;
mod desk;
mod items;
mod overview;
mod page;
mod policy;
mod settings;
mod store_away;
