//! The vectors that all guards must agree on. Keys and times are fixed, so that they are the same
//! wherever they are made. The paths are for the test that makes them, too. How they are read: `sdk/vectors/README.md`.

#[path = "make/answers.rs"]
mod answers;
#[path = "make/carriers.rs"]
mod carriers;
#[path = "make/keys.rs"]
mod keys;
#[path = "make/requests.rs"]
mod requests;
#[path = "make/stories.rs"]
mod stories;

use serde_json::{Value, json};

/// All of them.
pub(crate) fn vectors() -> Value {
    json!({
        "keySets": keys::sets(),
        "stories": stories::all(),
        "carriers": carriers::all(),
        "requests": requests::all(),
        "answers": answers::all(),
    })
}
