//! The checks of a record: what a third party computes to verify a draw.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    Cohort, DEPARTED_LEAF, DRAW_VERSION, DrawRecord, DrawState, DrawTicket, Hex, commitment,
    draw_seed, leaf, verify_path,
};
use crate::{Lane, Number};

/// Characters of a UUID with dashes.
const UUID_LEN: usize = 36;

/// The result of one check of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawCheck {
    /// The name of the check in `docs/DRAW.md`, the same in all implementations.
    pub name: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// What was found, in one sentence.
    pub message: String,
}

impl DrawRecord {
    /// Checks everything that follows from the record alone, and with `token` that the draw included this token.
    /// The signature of the beacon is not checked.
    ///
    /// The record proves nothing about the time before it was fetched: compare its commitment with the one that
    /// was published before the opening.
    #[must_use]
    pub fn check(&self, token: Option<&str>) -> Vec<DrawCheck> {
        let mut checks = vec![self.check_version()];
        if !checks[0].ok {
            return checks;
        }
        let (fields, drawn) = self.check_fields();
        checks.push(fields);
        let Some(drawn) = drawn else { return checks };
        checks.push(self.check_commitment(&drawn));
        checks.push(self.check_beacon());
        checks.push(self.check_seed(&drawn));
        if let Some(ticket) = &self.ticket {
            checks.push(check_number(ticket, &drawn.cohort));
            checks.push(check_rank(ticket, &drawn.cohort));
            checks.push(check_path(ticket, &drawn));
        }
        if let Some(token) = token {
            checks.push(self.check_token(token, &drawn.cohort));
        }
        checks
    }

    fn check_version(&self) -> DrawCheck {
        let version = self.version;
        if version == DRAW_VERSION {
            holds("version", "The record describes a draw of version 1.")
        } else {
            fails("version", format!("The record has version {version}; this program checks 1."))
        }
    }

    /// Checks that the fields fit the state. Returns the fields of a draw that has happened.
    fn check_fields(&self) -> (DrawCheck, Option<DrawnFields>) {
        let name = "fields";
        if self.state == DrawState::Committed {
            let hashes = [self.reveal, self.cohort_root, self.beacon, self.seed];
            let is_empty = hashes.iter().all(Option::is_none)
                && self.cohort_first.is_none()
                && self.cohort_size.is_none()
                && self.ticket.is_none();
            let check = if is_empty {
                let commitment = self.commitment;
                holds(name, format!("The draw has not happened. Keep its commitment {commitment}."))
            } else {
                fails(name, "The record has results, but its state says that no draw happened.")
            };
            return (check, None);
        }
        let drawn = self.reveal.zip(self.cohort_root).zip(self.seed).zip(self.cohort());
        let Some((((reveal, root), seed), cohort)) = drawn else {
            return (fails(name, "The record lacks a field of a draw that has happened."), None);
        };
        let (first, size) = (cohort.first(), cohort.size());
        let check = holds(name, format!("The draw has {size} numbers from {first}."));
        (check, Some(DrawnFields { reveal: reveal.0, root: root.0, seed: seed.0, cohort }))
    }

    fn check_commitment(&self, drawn: &DrawnFields) -> DrawCheck {
        let published = self.commitment;
        if commitment(&drawn.reveal) == published.0 {
            let message = format!(
                "The reveal has the commitment {published}; compare it with the one published before the opening."
            );
            holds("commitment", message)
        } else {
            fails("commitment", "The reveal is not the secret that was committed to.")
        }
    }

    fn check_beacon(&self) -> DrawCheck {
        let name = "beacon";
        match (self.beacon_round, self.beacon_signature, self.beacon) {
            (None, None, None) => holds(name, "The draw uses no public beacon."),
            (None, None, Some(_)) => holds(
                name,
                "The draw uses a public beacon, but the record does not name its round.",
            ),
            (Some(round), None, Some(_)) => {
                holds(name, format!("The draw uses round {round}; compare it with the public one."))
            }
            (Some(round), Some(signature), Some(beacon)) => {
                let randomness: [u8; 32] = Sha256::digest(signature.0).into();
                if randomness == beacon.0 {
                    holds(
                        name,
                        format!("The beacon is the randomness of the signature of round {round}."),
                    )
                } else {
                    fails(name, "The beacon is not the randomness of the signature.")
                }
            }
            (Some(round), _, None) => {
                fails(name, format!("Round {round} was announced, but the draw does not use it."))
            }
            (None, Some(_), _) => fails(name, "The record has a signature, but no round."),
        }
    }

    fn check_seed(&self, drawn: &DrawnFields) -> DrawCheck {
        let beacon = self.beacon.map(|beacon| beacon.0);
        let seed = draw_seed(&self.item_id, &drawn.reveal, &drawn.root, beacon.as_ref());
        if seed == drawn.seed {
            holds("seed", "The seed follows from the item, the reveal, the cohort and the beacon.")
        } else {
            fails(
                "seed",
                format!("The inputs give the seed {}, not the one of the record.", Hex(seed)),
            )
        }
    }

    fn check_token(&self, token: &str, cohort: &Cohort) -> DrawCheck {
        let name = "token";
        let Some((number, lane)) = token_fields(token, self.item_id.as_str()) else {
            return fails(name, format!("The token is not one of item {}.", self.item_id));
        };
        let is_in_cohort = lane == Lane::STANDARD && cohort.contains(number);
        match &self.ticket {
            None if lane != Lane::STANDARD => {
                holds(name, "The token is of another lane, which this draw does not order.")
            }
            None if !is_in_cohort => holds(
                name,
                "The token was issued outside the lobby; its line is in order of arrival.",
            ),
            None => fails(name, "The record has no proof for the token; fetch it with ?token=."),
            Some(ticket) if !is_in_cohort || ticket.number != number => {
                fails(name, "The ticket of the record is not the one of the token.")
            }
            Some(ticket) if ticket.leaf.0 == leaf(token) => {
                holds(name, "The leaf of the ticket is the SHA-256 of the token.")
            }
            Some(ticket) if ticket.leaf.0 == DEPARTED_LEAF => fails(
                name,
                "The ticket had ended before the opening, so that its token is not included.",
            ),
            Some(_) => fails(name, "The leaf of the ticket is not the SHA-256 of the token."),
        }
    }
}

/// The fields that a record has after the draw.
struct DrawnFields {
    reveal: [u8; 32],
    root: [u8; 32],
    seed: [u8; 32],
    cohort: Cohort,
}

fn check_number(ticket: &DrawTicket, cohort: &Cohort) -> DrawCheck {
    let DrawTicket { number, index, .. } = ticket;
    if cohort.contains(*number) && number.0 - cohort.first().0 == *index {
        holds("number", format!("The ticket has number {number}, index {index} of the cohort."))
    } else {
        fails("number", format!("Number {number} does not have index {index} of the cohort."))
    }
}

fn check_rank(ticket: &DrawTicket, cohort: &Cohort) -> DrawCheck {
    let claimed = ticket.rank;
    match cohort.cohort_rank(ticket.number) {
        Some(rank) if rank == claimed => {
            holds("rank", format!("The seed gives the ticket rank {rank} of {}.", cohort.size()))
        }
        Some(rank) => fails(
            "rank",
            format!("The seed gives the ticket rank {rank}, the record says {claimed}."),
        ),
        None => fails("rank", "The cohort does not contain the ticket."),
    }
}

fn check_path(ticket: &DrawTicket, drawn: &DrawnFields) -> DrawCheck {
    let path: Vec<[u8; 32]> = ticket.path.iter().map(|node| node.0).collect();
    if verify_path(&ticket.leaf.0, ticket.index, drawn.cohort.size(), &path, &drawn.root) {
        holds("path", "The path leads from the leaf of the ticket to the root of the cohort.")
    } else {
        fails(
            "path",
            "The path does not lead from the leaf of the ticket to the root of the cohort.",
        )
    }
}

/// Returns the number and the lane of a token of this item, without checking its signature.
fn token_fields(token: &str, item: &str) -> Option<(Number, Lane)> {
    let (holder, uuid) = token.split_at_checked(token.len().checked_sub(UUID_LEN)?)?;
    let user = holder.strip_suffix('-')?.strip_suffix(item)?.strip_suffix('-')?;
    let (high, _) = Uuid::try_parse(uuid).ok()?.as_u64_pair();
    let is_canonical = !uuid.bytes().any(|digit| digit.is_ascii_uppercase());
    let is_token = !user.is_empty() && is_canonical && (high >> 12) & 0xf == 8;
    is_token.then(|| (Number(high >> 16), Lane::from_bits(high >> 8)))
}

fn holds(name: &'static str, message: impl Into<String>) -> DrawCheck {
    DrawCheck { name, ok: true, message: message.into() }
}

fn fails(name: &'static str, message: impl Into<String>) -> DrawCheck {
    DrawCheck { name, ok: false, message: message.into() }
}
