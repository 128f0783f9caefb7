//! Writes `sdk/vectors/guard.json` anew: `cargo run -p daegi-guard --example vectors`. A test fails
//! while it differs from what is made here.

#![expect(clippy::unwrap_used, reason = "a tool for developers: what fails is shown at once")]

mod make;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/vectors/guard.json");
    std::fs::write(file, format!("{:#}\n", make::vectors()))
}
