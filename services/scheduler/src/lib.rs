//! The daegi scheduler.
