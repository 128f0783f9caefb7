//! Configuration errors, each as one line.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue};

use super::{Role, args};

/// An invalid configuration. No message repeats a value, because it could be a secret given to the
/// wrong option. The exception is a number out of range.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A variable with the prefix `DAEGI_` that no option has: probably a typo.
    #[error("unknown environment variable {0}, see --help")]
    UnknownVariable(String),

    /// An option that does not exist.
    #[error("unknown option {0}, see --help")]
    UnknownOption(String),

    /// A value that belongs to no option.
    #[error("a value without an option, see --help")]
    StrayValue,

    /// An option with an invalid value.
    #[error("--{option} ({}): {reason}", args::variable(option))]
    Invalid {
        /// The long name of the option.
        option: String,
        /// Why its value is invalid.
        reason: String,
    },

    /// An option that this role requires.
    #[error("{} needs --{option} ({})", role.binary(), args::variable(option))]
    Missing {
        /// The role that requires it.
        role: Role,
        /// The long name of the option.
        option: &'static str,
    },
}

impl ConfigError {
    pub(super) fn invalid(option: &str, reason: impl std::fmt::Display) -> Self {
        let reason = reason.to_string();
        Self::Invalid {
            option: option.to_owned(),
            reason: reason.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    /// Converts clap's error, whose text has several lines and repeats the value.
    pub(super) fn from_clap(error: &clap::Error) -> Self {
        let Some(option) = invalid_option(error) else {
            return Self::StrayValue;
        };
        match (error.kind(), error.source()) {
            (clap::error::ErrorKind::UnknownArgument, _) => unknown(&option),
            (_, Some(reason)) => Self::invalid(&option, reason),
            (_, None) => Self::invalid(&option, "needs a value"),
        }
    }
}

/// Returns the option without dashes and value name: `tick-ms` of `--tick-ms <MS>`, and `demo` of
/// `--demo[=<BOOL>]`.
fn invalid_option(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let name = shown.split([' ', '=', '[']).next()?;
    Some(name.strip_prefix("--").unwrap_or(name).to_owned())
}

/// Repeats only text that looks like an option name; anything else might be a secret without its
/// option.
fn unknown(option: &str) -> ConfigError {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
    if option.chars().all(is_name) {
        ConfigError::UnknownOption(format!("--{option}"))
    } else {
        ConfigError::StrayValue
    }
}
