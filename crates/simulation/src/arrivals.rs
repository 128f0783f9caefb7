//! When visitors arrive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Minutes of a recording at most: two days.
const MAX_MINUTES: usize = 2_880;

/// How many visitors join in each minute: recorded, or a total with a shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", untagged)]
pub enum Arrivals {
    /// Joins per minute, such as those of an earlier sale.
    #[serde(rename_all = "camelCase")]
    Recorded {
        /// The joins of each minute.
        #[schemars(length(max = 2880))]
        per_minute: Vec<u32>,
    },
    /// An invented sale.
    #[serde(rename_all = "camelCase")]
    Invented {
        /// How many join.
        #[schemars(range(min = 1))]
        total: u32,
        /// Over how many minutes.
        #[schemars(range(min = 1, max = 2880))]
        minutes: u32,
        /// How they are distributed.
        #[serde(default)]
        shape: Shape,
    },
}

/// How the arrivals of an invented sale are distributed over its minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Most in the first minutes, then fewer and fewer: an opening that was announced.
    #[default]
    Opening,
    /// The same number in each minute.
    Steady,
    /// Three bursts with few arrivals between them.
    Bursts,
}

impl Arrivals {
    /// Reads a recording: the JSON of a line's history as the admin API exports it, whose `joined` is a running
    /// total at times `at`, or text with the joins of each minute in the last column of each row.
    ///
    /// # Errors
    /// If it is neither.
    pub fn read(text: &str) -> Result<Self, Error> {
        let per_minute = match serde_json::from_str::<History>(text) {
            Ok(history) => history.per_minute(),
            Err(_) => read_table(text)?,
        };
        let arrivals = Self::Recorded { per_minute };
        arrivals.check()?;
        Ok(arrivals)
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// The first rule that they break.
    pub fn check(&self) -> Result<(), Error> {
        let minutes = match self {
            Self::Recorded { per_minute } => per_minute.len(),
            Self::Invented { minutes, .. } => *minutes as usize,
        };
        match (1..=MAX_MINUTES).contains(&minutes) {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "arrivals last {minutes} minutes, allowed are 1 to {MAX_MINUTES}"
            ))),
        }
    }

    /// Returns how many visitors arrive.
    #[must_use]
    pub fn count(&self) -> u32 {
        match self {
            Self::Recorded { per_minute } => {
                per_minute.iter().fold(0, |sum: u32, joins| sum.saturating_add(*joins))
            }
            Self::Invented { total, .. } => *total,
        }
    }

    /// Returns the times of all arrivals in milliseconds, in order.
    pub(crate) fn times(&self, rng: &mut fastrand::Rng) -> Vec<u64> {
        let within =
            |rng: &mut fastrand::Rng, minute: usize| minute as u64 * 60_000 + rng.u64(..60_000);
        let mut times: Vec<u64> = match self {
            Self::Recorded { per_minute } => {
                let joins = per_minute.iter().enumerate();
                joins
                    .flat_map(|(minute, joins)| (0..*joins).map(move |_| minute))
                    .map(|minute| within(rng, minute))
                    .collect()
            }
            Self::Invented { total, minutes, shape } => {
                let length = f64::from(*minutes) * 60_000.0;
                (0..*total).map(|_| (shape.time(rng) * length) as u64).collect()
            }
        };
        times.sort_unstable();
        times
    }
}

/// The fields of a line's history that a recording needs.
#[derive(Debug, Deserialize)]
struct History {
    /// Unix milliseconds.
    at: Vec<u64>,
    /// Tickets that joined until then.
    joined: Vec<u32>,
}

impl History {
    fn per_minute(&self) -> Vec<u32> {
        let mut per_minute = Vec::new();
        let samples: Vec<_> = self.at.iter().zip(&self.joined).collect();
        let Some((first, _)) = samples.first() else { return per_minute };
        for pair in samples.windows(2) {
            let [(_, before), (at, joined)] = pair else { continue };
            let minute = (at.saturating_sub(**first) / 60_000) as usize;
            if minute >= MAX_MINUTES {
                break;
            }
            if per_minute.len() <= minute {
                per_minute.resize(minute + 1, 0);
            }
            per_minute[minute] += joined.saturating_sub(**before);
        }
        per_minute
    }
}

/// Reads the last column of each row; a first row without a number is a header.
fn read_table(text: &str) -> Result<Vec<u32>, Error> {
    let rows = text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty());
    let mut per_minute = Vec::new();
    for (index, row) in rows {
        let last = row.rsplit([',', ';', '\t']).next().unwrap_or(row).trim();
        match last.parse() {
            Ok(joins) => per_minute.push(joins),
            Err(_) if index == 0 => {}
            Err(_) => {
                let text =
                    format!("row {} of the arrivals ends with {last:?}, not a number", index + 1);
                return Err(Error::Invalid(text));
            }
        }
    }
    Ok(per_minute)
}

impl Shape {
    /// Returns a random time between 0 and 1.
    fn time(self, rng: &mut fastrand::Rng) -> f64 {
        match self {
            Self::Steady => rng.f64(),
            // An exponential distribution that is cut off: two thirds arrive in the first fifth.
            Self::Opening => -(1.0 - rng.f64() * (1.0 - (-5.0_f64).exp())).ln() / 5.0,
            Self::Bursts => match rng.u32(..10) {
                burst @ 0..9 => f64::from(burst % 3) / 3.0 + rng.f64() / 30.0,
                _ => rng.f64(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_in_order_within_their_minutes_and_the_same_for_a_seed() {
        let recorded = Arrivals::Recorded { per_minute: vec![3, 0, 5] };
        let times = recorded.times(&mut fastrand::Rng::with_seed(7));
        assert_eq!(times, recorded.times(&mut fastrand::Rng::with_seed(7)));
        assert!(times.is_sorted() && times.len() == 8);
        assert_eq!(times.iter().filter(|at| **at < 60_000).count(), 3);
        assert_eq!(times.iter().filter(|at| **at >= 120_000).count(), 5);
        for shape in [Shape::Opening, Shape::Steady, Shape::Bursts] {
            let invented = Arrivals::Invented { total: 1_000, minutes: 10, shape };
            let times = invented.times(&mut fastrand::Rng::with_seed(7));
            assert!(times.iter().all(|at| *at <= 600_000), "{shape:?}");
        }
    }

    #[test]
    fn recordings_are_histories_or_tables() {
        let read = |text: &str| Arrivals::read(text).unwrap();
        let per_minute =
            |per_minute: &[u32]| Arrivals::Recorded { per_minute: per_minute.to_vec() };
        let history =
            r#"{"at":[1000,31000,61000,181000],"joined":[5,15,18,20],"waiting":[1,1,1,1]}"#;
        assert_eq!(read(history), per_minute(&[10, 3, 0, 2]));
        assert_eq!(read("minute,joined\n20:00,7\n20:01,9\n"), per_minute(&[7, 9]));
        assert_eq!(read("7\n9"), per_minute(&[7, 9]));
        assert!(Arrivals::read("7\nmany").unwrap_err().to_string().contains("row 2"));
        assert!(Arrivals::read("").is_err());
    }

    #[test]
    fn most_visitors_of_an_opening_come_early() {
        let invented = Arrivals::Invented { total: 10_000, minutes: 10, shape: Shape::Opening };
        let times = invented.times(&mut fastrand::Rng::with_seed(7));
        let early = times.iter().filter(|at| **at < 120_000).count();
        assert!((6_000..7_000).contains(&early), "{early}");
    }
}
