//! The daegi api.
