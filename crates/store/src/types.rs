//! Arguments and results of store calls, by role.

mod access;
mod admin;
mod admission;
mod history;
mod item;
mod line;
mod outbox;
mod ticket;

pub use access::{AccessChange, AccessLog, AccessOutcome, AccessRules};
pub use admin::{HeartbeatRecord, MemoryUsage, PutOperator};
pub use admission::{Admission, Epoch, Expiry, Sweep};
pub use daegi_domain::JoinRefusal;
pub use history::HourAppend;
pub use item::{BeaconOutcome, ItemUpdateOutcome, PolicyUpdateOutcome, PutOutcome, ReplayState};
pub use line::{ChangeCursor, LaneCounts, LineCounts, LineSnapshot, LineTotals};
pub use outbox::OutboxBatch;
pub use ticket::{
    EndOutcome, EntryProof, JoinOutcome, LaneJoin, LeaveLimit, LiveState, TicketState,
};
