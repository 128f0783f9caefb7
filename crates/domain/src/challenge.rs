//! Challenges at the join: a proof of work, or a widget of a third party, that a client solves before it gets a ticket.
//!
//! A challenge is 24 bytes in lower-case hexadecimal: 4 bits key id · 4 bits version (1 for a proof of work, 2 for a
//! widget) · 8 bits difficulty (0 for a widget) · 48 bits time of issue in Unix milliseconds · 128 bits of HMAC-SHA256
//! over (item, user, the 8 bytes before).
//!
//! The solution of a proof of work is `<challenge>:<nonce>`; the nonce is up to 16 hexadecimal digits. SHA-256 over the
//! 24 bytes and the nonce as 8 bytes, big-endian, begins with as many zero bits as the difficulty says. These 32 bytes
//! are one block of SHA-256. The solution of a widget is `<challenge>:<response>`, and its provider verifies the response.
//!
//! Nothing is stored: the signature binds a challenge to its item, its user and its time. A user who sends a solution
//! again gets the ticket that the first join created, so that a replay gains nothing.
//! See `docs/adr/020-challenges.md`; `sdk/vectors/challenge.json` has test vectors.

use hmac::{Hmac, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{ItemId, Millis, TicketKeys, UserId};

/// Distinguishes challenges from tokens and invitations, which are signed with the same secrets.
const PREFIX: &[u8] = b"daegi-challenge\0";

/// Part of the signed bytes, so that a challenge of one kind is not accepted as one of another.
const PROOF_OF_WORK: u8 = 1;
const WIDGET: u8 = 2;
const SIGNED_LEN: usize = 8;
const MAC_LEN: usize = 16;
const CHALLENGE_LEN: usize = SIGNED_LEN + MAC_LEN;
const MAX_NONCE_DIGITS: usize = 16;

/// Whether a join needs the solution of a challenge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChallengePolicy {
    /// A join needs none.
    #[default]
    Off,
    /// A user without a ticket solves a proof of work.
    Pow,
    /// A user without a ticket solves the widget of a third party, which the api is configured for.
    Widget,
}

/// A verified or issued proof of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Challenge {
    /// When it was issued.
    pub issued_at: Millis,
    /// The zero bits with which the hash of a solution begins.
    pub difficulty: u8,
}

/// Why a solution is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// Malformed or forged, of another item or user, or signed with a removed secret.
    #[error("the solved challenge is malformed or is not of this item and user")]
    Invalid,
    /// Valid, but older than [`Challenge::LIFETIME_MS`].
    #[error("the solved challenge has expired")]
    Expired,
    /// The hash has too few leading zero bits.
    #[error("the nonce does not solve the challenge")]
    WrongNonce,
    /// The provider of the widget does not confirm the response: it is invalid, used, too old or of another page.
    #[error("the response of the widget is not confirmed, solve the widget again")]
    WrongResponse,
}

impl Challenge {
    /// How long a challenge is valid: 2 min, several times what a slow phone needs.
    pub const LIFETIME_MS: Millis = 120_000;

    /// The highest difficulty: 2^24 hashes on average, 17 s at a million hashes per second. Most browsers solve it
    /// before it expires.
    pub const MAX_DIFFICULTY: u8 = 24;
}

impl TicketKeys {
    /// Returns the text of a proof of work for a user of an item, signed with the first secret.
    #[must_use]
    pub fn challenge(&self, item: &ItemId, user: &UserId, challenge: Challenge) -> String {
        self.challenge_text(item, user, PROOF_OF_WORK, challenge)
    }

    /// Returns the text of a challenge that a user of an item solves with a widget, signed with the first secret.
    #[must_use]
    pub fn widget_challenge(&self, item: &ItemId, user: &UserId, issued_at: Millis) -> String {
        self.challenge_text(item, user, WIDGET, Challenge { issued_at, difficulty: 0 })
    }

    /// Verifies a solution of a proof of work for a user of an item. The signed difficulty applies, whatever this pod
    /// would issue now.
    ///
    /// # Errors
    /// If the solution is refused.
    pub fn verify_solution(
        &self,
        item: &ItemId,
        user: &UserId,
        solution: &str,
        now: Millis,
    ) -> Result<Challenge, ChallengeError> {
        let (bytes, nonce) = decode(solution).ok_or(ChallengeError::Invalid)?;
        let challenge = self.verify_challenge(item, user, &bytes, now)?;
        if leading_zeros(&bytes, nonce) < u32::from(challenge.difficulty) {
            return Err(ChallengeError::WrongNonce);
        }
        Ok(challenge)
    }

    /// Verifies the challenge in the solution of a widget for a user of an item. Returns the challenge and the
    /// response, which only the provider of the widget can verify.
    ///
    /// # Errors
    /// If the challenge is refused or the response is empty.
    pub fn verify_widget_challenge<'a>(
        &self,
        item: &ItemId,
        user: &UserId,
        solution: &'a str,
        now: Millis,
    ) -> Result<(&'a str, &'a str), ChallengeError> {
        let (challenge, response) = solution
            .split_once(':')
            .filter(|(_, response)| !response.is_empty())
            .ok_or(ChallengeError::Invalid)?;
        let bytes = decode_challenge(challenge, WIDGET).ok_or(ChallengeError::Invalid)?;
        self.verify_challenge(item, user, &bytes, now)?;
        Ok((challenge, response))
    }

    fn challenge_text(
        &self,
        item: &ItemId,
        user: &UserId,
        version: u8,
        challenge: Challenge,
    ) -> String {
        let (key, mac) = self.signing_mac();
        let mut bytes = [0; CHALLENGE_LEN];
        bytes[..SIGNED_LEN].copy_from_slice(&challenge.issued_at.to_be_bytes());
        bytes[0] = key << 4 | version;
        bytes[1] = challenge.difficulty;
        let signature = sign(mac, item, user, &bytes[..SIGNED_LEN]);
        bytes[SIGNED_LEN..].copy_from_slice(&signature);
        hex::encode(bytes)
    }

    /// Verifies signature and age.
    fn verify_challenge(
        &self,
        item: &ItemId,
        user: &UserId,
        bytes: &[u8; CHALLENGE_LEN],
        now: Millis,
    ) -> Result<Challenge, ChallengeError> {
        let (signed, signature) = bytes.split_at(SIGNED_LEN);
        let mac = self.verifying_mac(signed[0] >> 4).ok_or(ChallengeError::Invalid)?;
        if !bool::from(sign(mac.clone(), item, user, signed).ct_eq(signature)) {
            return Err(ChallengeError::Invalid);
        }
        let issued_at = signed[2..].iter().fold(0, |at, byte| at << 8 | Millis::from(*byte));
        // In both directions, so that a pod whose clock is ahead issues no challenge that outlives its lifetime.
        if issued_at.abs_diff(now) > Challenge::LIFETIME_MS {
            return Err(ChallengeError::Expired);
        }
        Ok(Challenge { issued_at, difficulty: signed[1] })
    }
}

/// Returns the solution with the lowest nonce, for tests and clients in Rust. Takes 2^difficulty hashes on average.
/// Returns `None` if the challenge is malformed.
#[must_use]
pub fn solve(challenge: &str, difficulty: u8) -> Option<String> {
    let bytes = decode_challenge(challenge, PROOF_OF_WORK)?;
    let nonce = (0..=u64::MAX).find(|nonce| leading_zeros(&bytes, *nonce) >= difficulty.into())?;
    Some(format!("{challenge}:{nonce:x}"))
}

/// Returns the zero bits with which the hash of a challenge and a nonce begins, up to 64.
fn leading_zeros(challenge: &[u8; CHALLENGE_LEN], nonce: u64) -> u32 {
    let hash = Sha256::new().chain_update(challenge).chain_update(nonce.to_be_bytes()).finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(first).leading_zeros()
}

/// Returns the first 128 bits of the MAC. Lengths come before texts, so that no two lists of fields have the same
/// bytes.
fn sign(mut mac: Hmac<Sha256>, item: &ItemId, user: &UserId, fields: &[u8]) -> [u8; MAC_LEN] {
    mac.update(PREFIX);
    for text in [item.as_str(), user.as_str()] {
        mac.update(&[text.len() as u8]);
        mac.update(text.as_bytes());
    }
    mac.update(fields);
    let mut first = [0; MAC_LEN];
    first.copy_from_slice(&mac.finalize().into_bytes()[..MAC_LEN]);
    first
}

fn decode(solution: &str) -> Option<([u8; CHALLENGE_LEN], u64)> {
    let (challenge, nonce) = solution.split_once(':')?;
    let is_hexadecimal = nonce.bytes().all(|digit| digit.is_ascii_hexdigit());
    if nonce.len() > MAX_NONCE_DIGITS || !is_hexadecimal {
        return None;
    }
    Some((decode_challenge(challenge, PROOF_OF_WORK)?, u64::from_str_radix(nonce, 16).ok()?))
}

fn decode_challenge(text: &str, version: u8) -> Option<[u8; CHALLENGE_LEN]> {
    let mut bytes = [0; CHALLENGE_LEN];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    (bytes[0] & 0xf == version).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OLD: &str = "3:000102030405060708090a0b0c0d0e0f";
    const NEW: &str = "4:f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
    const NOW: Millis = 1_794_600_000_000;
    const CHALLENGE: Challenge = Challenge { issued_at: NOW, difficulty: 8 };

    fn keys(text: &str) -> TicketKeys {
        text.parse().unwrap()
    }

    fn item(id: &str) -> ItemId {
        ItemId::parse(id).unwrap()
    }

    fn user(id: &str) -> UserId {
        UserId::parse(id).unwrap()
    }

    fn solution(challenge: Challenge) -> String {
        let text = keys(OLD).challenge(&item("concert"), &user("kim"), challenge);
        solve(&text, challenge.difficulty).unwrap()
    }

    #[test]
    fn a_solution_is_valid_for_its_item_and_user_until_it_expires() {
        let (keys, solution) = (keys(OLD), solution(CHALLENGE));
        let verify = |id, name, now| keys.verify_solution(&item(id), &user(name), &solution, now);
        assert_eq!(verify("concert", "kim", NOW), Ok(CHALLENGE));
        assert_eq!(verify("concert", "kim", NOW + Challenge::LIFETIME_MS), Ok(CHALLENGE));
        let late = verify("concert", "kim", NOW + Challenge::LIFETIME_MS + 1);
        assert_eq!(late, Err(ChallengeError::Expired));
        let early = verify("concert", "kim", NOW - Challenge::LIFETIME_MS - 1);
        assert_eq!(early, Err(ChallengeError::Expired));
        assert_eq!(verify("concert2", "kim", NOW), Err(ChallengeError::Invalid));
        assert_eq!(verify("concert", "lee", NOW), Err(ChallengeError::Invalid));
    }

    #[test]
    fn a_widget_has_a_challenge_of_its_own_that_is_bound_to_item_user_and_time() {
        let keys = keys(OLD);
        let text = keys.widget_challenge(&item("concert"), &user("kim"), NOW);
        let solution = format!("{text}:0.response:with-colon");
        let verify =
            |id, name, now| keys.verify_widget_challenge(&item(id), &user(name), &solution, now);
        let verified = Ok((text.as_str(), "0.response:with-colon"));
        assert_eq!(verify("concert", "kim", NOW + Challenge::LIFETIME_MS), verified);
        let late = NOW + Challenge::LIFETIME_MS + 1;
        assert_eq!(verify("concert", "kim", late), Err(ChallengeError::Expired));
        assert_eq!(verify("play", "kim", NOW), Err(ChallengeError::Invalid));
        assert_eq!(verify("concert", "lee", NOW), Err(ChallengeError::Invalid));
        // Its difficulty is 0: any nonce would solve it as a proof of work.
        let as_work = format!("{text}:0");
        let verified = keys.verify_solution(&item("concert"), &user("kim"), &as_work, NOW);
        assert_eq!(verified, Err(ChallengeError::Invalid));
        let work = keys.challenge(&item("concert"), &user("kim"), CHALLENGE);
        for bad in [format!("{work}:response"), format!("{text}:"), text] {
            let verified = keys.verify_widget_challenge(&item("concert"), &user("kim"), &bad, NOW);
            assert_eq!(verified, Err(ChallengeError::Invalid), "{bad}");
        }
    }

    /// Without lengths before the texts, both pairs of ids would have the same signature.
    #[test]
    fn ids_that_read_the_same_together_have_different_challenges() {
        let challenge = |id, name| keys(OLD).challenge(&item(id), &user(name), CHALLENGE);
        assert_ne!(challenge("ab", "c"), challenge("a", "bc"));
    }

    #[test]
    fn a_nonce_with_one_zero_bit_too_few_is_refused() {
        let text = keys(OLD).challenge(&item("concert"), &user("kim"), CHALLENGE);
        let bytes = decode_challenge(&text, PROOF_OF_WORK).unwrap();
        let nonce = (0..).find(|nonce| leading_zeros(&bytes, *nonce) == 7).unwrap();
        let verify = |solution: &str| {
            keys(OLD).verify_solution(&item("concert"), &user("kim"), solution, NOW)
        };
        assert_eq!(verify(&format!("{text}:{nonce:x}")), Err(ChallengeError::WrongNonce));
    }

    #[test]
    fn a_client_cannot_lower_the_difficulty_or_move_the_time() {
        let text = keys(OLD).challenge(&item("concert"), &user("kim"), CHALLENGE);
        for index in 0..CHALLENGE_LEN {
            let mut bytes = decode_challenge(&text, PROOF_OF_WORK).unwrap();
            bytes[index] ^= 8;
            let altered = format!("{}:0", hex::encode(bytes));
            let verified = keys(OLD).verify_solution(&item("concert"), &user("kim"), &altered, NOW);
            assert_eq!(verified, Err(ChallengeError::Invalid), "byte {index}");
        }
    }

    #[test]
    fn a_rotated_secret_still_verifies_until_it_is_removed() {
        let solution = solution(CHALLENGE);
        let verify =
            |text: &str| keys(text).verify_solution(&item("concert"), &user("kim"), &solution, NOW);
        assert_eq!(verify(&format!("{NEW},{OLD}")), Ok(CHALLENGE));
        assert_eq!(verify(NEW), Err(ChallengeError::Invalid));
        assert_eq!(verify(&NEW.replace("4:", "3:")), Err(ChallengeError::Invalid));
    }

    #[test]
    fn malformed_solutions_are_refused() {
        let text = solution(CHALLENGE);
        let (challenge, nonce) = text.split_once(':').unwrap();
        for bad in [
            String::new(),
            ":".to_owned(),
            challenge.to_owned(),
            format!("{challenge}:"),
            format!("{challenge}:+{nonce}"),
            format!("{challenge}: {nonce}"),
            format!("{challenge}:{nonce}:{nonce}"),
            format!("{challenge}:{nonce:0>17}"),
            format!("{challenge}00:{nonce}"),
            format!("{}:{nonce}", &challenge[1..]),
            format!("{}2{}:{nonce}", &challenge[..1], &challenge[2..]),
        ] {
            let verified = keys(OLD).verify_solution(&item("concert"), &user("kim"), &bad, NOW);
            assert_eq!(verified, Err(ChallengeError::Invalid), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn issued_and_solved_challenges_verify(
            id in "[A-Za-z0-9._~-]{1,64}",
            name in "[A-Za-z0-9._@:+-]{1,64}",
            issued_at in 0_u64..1 << 48,
            difficulty in 0_u8..=10,
            late in 0..=Challenge::LIFETIME_MS,
        ) {
            prop_assume!(ItemId::parse(&id).is_ok() && UserId::parse(&name).is_ok());
            let (keys, challenge) = (keys(OLD), Challenge { issued_at, difficulty });
            let text = keys.challenge(&item(&id), &user(&name), challenge);
            let solution = solve(&text, difficulty).unwrap();
            let verified = keys.verify_solution(&item(&id), &user(&name), &solution, issued_at + late);
            prop_assert_eq!(verified, Ok(challenge));
        }

        #[test]
        fn no_text_panics_or_verifies(text in ".{0,80}") {
            let verified = keys(OLD).verify_solution(&item("concert"), &user("kim"), &text, NOW);
            prop_assert!(verified.is_err());
        }
    }
}
