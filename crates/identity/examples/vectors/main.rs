//! Regenerates `sdk/vectors/identity.json`: `cargo run -p daegi-identity --example identity_vectors`. A test fails while
//! the file is out of date.

#![expect(clippy::unwrap_used, reason = "a developer tool: a panic shows what failed")]

mod cases;
mod keys;

use std::path::PathBuf;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sdk/vectors/identity.json")
}

fn main() -> std::io::Result<()> {
    std::fs::write(file(), format!("{:#}\n", keys::sorted(&cases::vectors())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_vectors_are_up_to_date() {
        let how = "sdk/vectors/identity.json is out of date: cargo run -p daegi-identity --example identity_vectors";
        let committed = std::fs::read_to_string(file()).unwrap();
        assert!(committed == format!("{:#}\n", keys::sorted(&cases::vectors())), "{how}");
    }
}
