//! The daegi consumer.
