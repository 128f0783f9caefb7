//! Processes of the fleet.

pub(crate) use daegi_testkit::fleet::{Fleet, Member, TICKET_SECRETS, binary};
