//! Processes of the fleet.

pub(crate) use daegi_testkit::fleet::{Fleet, FleetProcess, TICKET_SECRETS, binary};
