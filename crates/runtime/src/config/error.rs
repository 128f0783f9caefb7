//! What can be wrong with a configuration, each as one line.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue};

use super::{Role, source};

/// A configuration that nothing should start with. No message repeats a value, unless the value
/// is a number out of range: it could be a secret in the wrong place.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A variable with our prefix that no option has: a typo, and typos are bugs.
    #[error("unknown environment variable {0}, see --help")]
    UnknownVariable(String),

    /// An option that does not exist.
    #[error("unknown option {0}, see --help")]
    UnknownOption(String),

    /// A word that belongs to no option.
    #[error("a value without an option, see --help")]
    StrayValue,

    /// An option whose value cannot be used.
    #[error("--{option} ({}): {reason}", source::variable(option))]
    Bad {
        /// The long name of the option.
        option: String,
        /// Why its value cannot be used.
        reason: String,
    },

    /// An option that this role cannot work without.
    #[error("{} needs --{option} ({})", role.binary(), source::variable(option))]
    Missing {
        /// The role that needs it.
        role: Role,
        /// The long name of the option.
        option: &'static str,
    },
}

impl ConfigError {
    pub(super) fn bad(option: &str, reason: impl std::fmt::Display) -> Self {
        let reason = reason.to_string();
        Self::Bad {
            option: option.to_owned(),
            reason: reason.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    /// clap's own text has several lines and repeats the value, so only its facts are taken over.
    pub(super) fn from_clap(error: &clap::Error) -> Self {
        let Some(option) = invalid_option(error) else {
            return Self::StrayValue;
        };
        match (error.kind(), error.source()) {
            (clap::error::ErrorKind::UnknownArgument, _) => unknown(&option),
            (_, Some(reason)) => Self::bad(&option, reason),
            (_, None) => Self::bad(&option, "needs a value"),
        }
    }
}

/// The option without its dashes and its value's name: `tick-ms` of `--tick-ms <MS>`, and `demo`
/// of `--demo[=<BOOL>]`.
fn invalid_option(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let name = shown.split([' ', '=', '[']).next()?;
    Some(name.strip_prefix("--").unwrap_or(name).to_owned())
}

/// A long name looks like one; anything else might be a secret that lost its option.
fn unknown(option: &str) -> ConfigError {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
    if option.chars().all(is_name) {
        ConfigError::UnknownOption(format!("--{option}"))
    } else {
        ConfigError::StrayValue
    }
}
