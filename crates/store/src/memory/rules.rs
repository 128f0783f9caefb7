//! One file per Lua script, with the same name: the specification of the Redis store.

pub(super) mod add_visits;
pub(super) mod admit;
pub(super) mod append_hour;
pub(super) mod checkpoint_control;
pub(super) mod close_line;
pub(super) mod end_ticket;
pub(super) mod expire;
pub(super) mod fix_root;
pub(super) mod freeze_cohort;
pub(super) mod items;
pub(super) mod join;
pub(super) mod open_line;
pub(super) mod put_beacon;
pub(super) mod reclaim;
pub(super) mod resolve;
pub(super) mod restore_control;
pub(super) mod restore_entry;
pub(super) mod set_policy;
pub(super) mod sweep;
