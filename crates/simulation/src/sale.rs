//! The settings of a sale, and how its visitors behave.

use std::collections::BTreeMap;
use std::time::Duration;

use daegi_domain::{LaneName, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Arrivals, Error};

/// A sale to simulate. All but the arrivals and the stock have defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sale {
    /// When visitors join.
    pub arrivals: Arrivals,
    /// How many are for sale.
    #[schemars(range(max = u32::MAX))]
    pub stock: u32,
    /// The rules of the line. The opening is ignored: the line is open from the beginning.
    #[serde(default)]
    pub policy: Policy,
    /// The global quota; `policy.tokensPerTick` replaces it.
    #[serde(default = "default_quota")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub token_count_to_move: u32,
    /// The length of a tick in milliseconds.
    #[serde(default = "default_tick_ms")]
    #[schemars(range(min = 100, max = 60_000))]
    pub tick_ms: u32,
    /// How visitors behave.
    #[serde(default)]
    pub visitors: Visitors,
    /// The percentage of arrivals with an invitation to each lane; all others join the standard lane.
    #[serde(default)]
    pub lane_percent: BTreeMap<LaneName, u32>,
    /// When the operator pauses admission.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub pauses: Vec<Pause>,
    /// The seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// When the simulation ends at the latest, in hours after the first arrival.
    #[serde(default = "default_hours")]
    #[schemars(range(min = 1, max = 48))]
    pub max_hours: u32,
}

/// How visitors behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "SimulatedVisitors")]
pub struct Visitors {
    /// How many close the waiting page after they joined and do not come back, in percent.
    #[schemars(range(max = 100))]
    pub no_show_percent: u32,
    /// How many of those admitted buy, in percent. The others let their entry expire.
    #[schemars(range(max = 100))]
    pub buy_percent: u32,
    /// How long a purchase takes, in seconds: the mean of a distribution whose least is 0.4 of it.
    #[schemars(range(min = 1, max = 86_400))]
    pub checkout_seconds: u32,
}

/// A pause of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pause {
    /// When it begins, in seconds after the first arrival.
    pub at_seconds: u32,
    /// How long it lasts.
    pub seconds: u32,
}

/// What a run may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Arrivals at most.
    pub arrivals: u32,
    /// How long the run may take.
    pub time: Duration,
}

impl Default for Limits {
    /// For a command on the own machine: a million arrivals, ten minutes.
    fn default() -> Self {
        Self { arrivals: 1_000_000, time: Duration::from_secs(600) }
    }
}

impl Default for Visitors {
    fn default() -> Self {
        Self { no_show_percent: 0, buy_percent: 90, checkout_seconds: 60 }
    }
}

fn default_quota() -> u32 {
    10
}

fn default_tick_ms() -> u32 {
    1_000
}

fn default_hours() -> u32 {
    12
}

impl Sale {
    /// Returns a sale with default rules and visitors.
    #[must_use]
    pub fn new(arrivals: Arrivals, stock: u32) -> Self {
        Self {
            arrivals,
            stock,
            policy: Policy::default(),
            token_count_to_move: default_quota(),
            tick_ms: default_tick_ms(),
            visitors: Visitors::default(),
            lane_percent: BTreeMap::new(),
            pauses: Vec::new(),
            seed: 0,
            max_hours: default_hours(),
        }
    }

    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// The first rule that the sale breaks.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        let within = |field: &str, value: u32, min: u32, max: u32| {
            let fits = (min..=max).contains(&value);
            let text = || format!("{field} is {value}, allowed are {min} to {max}");
            if fits { Ok(()) } else { Err(Error::Invalid(text())) }
        };
        self.arrivals.check()?;
        within("the number of arrivals", self.arrivals.count(), 1, limits.arrivals)?;
        within("tokenCountToMove", self.token_count_to_move, 1, 1_000_000)?;
        within("tickMs", self.tick_ms, 100, 60_000)?;
        within("visitors.noShowPercent", self.visitors.no_show_percent, 0, 100)?;
        within("visitors.buyPercent", self.visitors.buy_percent, 0, 100)?;
        within("visitors.checkoutSeconds", self.visitors.checkout_seconds, 1, 86_400)?;
        within("maxHours", self.max_hours, 1, 48)?;
        within("the number of pauses", self.pauses.len() as u32, 0, 20)?;
        self.policy.check().map_err(|error| Error::Invalid(error.to_string()))?;
        let lanes = &self.policy.lanes;
        let unknown =
            self.lane_percent.keys().find(|name| !lanes.iter().any(|lane| lane.name == **name));
        if let Some(name) = unknown {
            return Err(Error::Invalid(format!("lanePercent: policy.lanes has no lane {name}")));
        }
        let percent =
            self.lane_percent.values().fold(0, |sum: u32, part| sum.saturating_add(*part));
        within("the sum of lanePercent", percent, 0, 100)
    }
}
