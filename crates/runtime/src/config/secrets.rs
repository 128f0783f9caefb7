//! Keys and tokens: which role requires which, and what happens if one is missing.

use std::fmt;
use std::time::Duration;

use daegi_domain::{PassKeys, TicketKeys};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::value::InvalidValue;
use super::{ConfigError, Role};

/// Minimum characters of an admin token, because shorter ones could be guessed.
const MIN_TOKEN: usize = 16;

const ADMIN_TOKEN: &str = "admin-token";
const TICKET_SECRETS: &str = "ticket-secrets";
const PASS_KEY: &str = "pass-key";

/// The bearer token of the admin API. Its `Debug` form hides it.
#[derive(Clone)]
pub struct AdminToken(String);

/// The secrets of a process, all present.
///
/// A secret that the role does not require and that was not given is random, so that it authorizes
/// and verifies nothing. A role that starts to use a secret must be added to [`Secrets::required`].
#[derive(Debug, Clone)]
pub struct Secrets {
    /// The bearer token of the admin API.
    pub admin_token: AdminToken,
    /// Signs and verifies tickets.
    pub ticket_keys: TicketKeys,
    /// Signs passes.
    pub pass_keys: PassKeys,
    /// Options of required secrets that were not given and were generated: they differ in each
    /// process and after a restart. Only the all-in-one has any; it warns about them.
    pub generated: Vec<&'static str>,
}

impl AdminToken {
    /// Parses a token that fits into a header and is hard to guess.
    ///
    /// # Errors
    /// If it is too short or has characters that are not allowed in a header.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Err(InvalidValue::UnprintableToken)
        } else if text.len() < MIN_TOKEN {
            Err(InvalidValue::ShortToken)
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// Generates a token with the 122 random bits of a UUID.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    /// Compares in constant time.
    #[must_use]
    pub fn matches(&self, candidate: &str) -> bool {
        self.0.as_bytes().ct_eq(candidate.as_bytes()).into()
    }

    /// Returns the token itself, for the banner of the all-in-one. Never for logs.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

impl Secrets {
    /// Returns the options of the secrets that a role requires.
    #[must_use]
    pub const fn required(role: Role) -> &'static [&'static str] {
        match role {
            Role::Api => &[TICKET_SECRETS, PASS_KEY],
            Role::Scheduler => &[ADMIN_TOKEN, TICKET_SECRETS],
            Role::Consumer => &[TICKET_SECRETS],
            Role::AllInOne => &[ADMIN_TOKEN, TICKET_SECRETS, PASS_KEY],
        }
    }

    /// Resolves the secrets of a role. Fleet roles fail without those they require, because pods
    /// with generated secrets would not accept each other's tickets. The all-in-one generates those
    /// that are missing.
    pub(super) fn resolve(
        role: Role,
        admin_token: Option<AdminToken>,
        ticket_keys: Option<TicketKeys>,
        pass_keys: Option<PassKeys>,
        ticket_max_age: Duration,
    ) -> Result<Self, ConfigError> {
        let given = [
            (ADMIN_TOKEN, admin_token.is_some()),
            (TICKET_SECRETS, ticket_keys.is_some()),
            (PASS_KEY, pass_keys.is_some()),
        ];
        let generated = missing(role, given);
        if let (true, Some(&option)) = (role != Role::AllInOne, generated.first()) {
            return Err(ConfigError::Missing { role, option });
        }
        let max_age = u64::try_from(ticket_max_age.as_millis()).unwrap_or(u64::MAX);
        let ticket_keys = ticket_keys.unwrap_or_else(TicketKeys::generate);
        Ok(Self {
            admin_token: admin_token.unwrap_or_else(AdminToken::generate),
            ticket_keys: ticket_keys.with_max_age(max_age),
            pass_keys: pass_keys.unwrap_or_else(PassKeys::generate),
            generated,
        })
    }
}

fn missing(role: Role, given: [(&'static str, bool); 3]) -> Vec<&'static str> {
    let is_given = |option| given.contains(&(option, true));
    let needed = Secrets::required(role).iter().copied();
    needed.filter(|&option| !is_given(option)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_matches() {
        let token = AdminToken::parse("correct-horse-battery").unwrap();
        assert!(token.matches("correct-horse-battery"));
        for wrong in ["", "correct-horse-batterz", "correct-horse-battery2", "correct-horse"] {
            assert!(!token.matches(wrong), "{wrong}");
        }
    }

    #[test]
    fn generated_tokens_differ_and_could_have_been_given() {
        let (one, other) = (AdminToken::generate(), AdminToken::generate());
        assert!(!one.matches(other.reveal()));
        assert!(AdminToken::parse(one.reveal()).is_ok());
    }

    #[test]
    fn debug_hides_the_token() {
        let token = AdminToken::parse("correct-horse-battery").unwrap();
        assert!(!format!("{token:?}").contains("horse"));
    }
}
