//! Regenerates `sdk/vectors/guard.json`: `cargo run -p daegi-guard --example vectors`. A test fails
//! while the file is out of date.

#![expect(clippy::unwrap_used, reason = "a developer tool: a panic shows what failed")]

mod generate;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/vectors/guard.json");
    std::fs::write(file, format!("{:#}\n", generate::vectors()))
}
