//! Generates the vectors that all guards must pass. Keys and times are fixed, so that the output is
//! deterministic. The explicit paths let the test include this file. Format: `sdk/vectors/README.md`.

#[path = "generate/keys.rs"]
mod keys;
#[path = "generate/pass_sources.rs"]
mod pass_sources;
#[path = "generate/requests.rs"]
mod requests;
#[path = "generate/responses.rs"]
mod responses;
#[path = "generate/scenarios.rs"]
mod scenarios;

use serde_json::{Value, json};

/// Returns all vectors.
pub(crate) fn vectors() -> Value {
    json!({
        "keySets": keys::sets(),
        "scenarios": scenarios::all(),
        "passSources": pass_sources::all(),
        "requests": requests::all(),
        "responses": responses::all(),
    })
}
