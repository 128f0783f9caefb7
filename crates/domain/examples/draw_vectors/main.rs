//! Regenerates `sdk/vectors/draw.json`: `cargo run -p daegi-domain --example draw_vectors`. A test fails while
//! the file is out of date.

#![expect(clippy::unwrap_used, reason = "a developer tool: a panic shows what failed")]

mod generate;

use std::path::PathBuf;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sdk/vectors/draw.json")
}

fn main() -> std::io::Result<()> {
    std::fs::write(file(), generate::text(&generate::vectors()))
}

#[cfg(test)]
mod tests {
    use daegi_domain::DrawRecord;

    use super::*;

    #[test]
    fn the_committed_vectors_are_up_to_date() {
        let how = "sdk/vectors/draw.json is out of date: cargo run -p daegi-domain --example draw_vectors";
        let committed = std::fs::read_to_string(file()).unwrap();
        let committed: serde_json::Value = serde_json::from_str(&committed).unwrap();
        assert!(committed == generate::vectors(), "{how}");
    }

    #[test]
    fn genuine_records_hold_and_each_altered_one_fails_as_intended() {
        let vectors = generate::vectors();
        for case in vectors["records"].as_array().unwrap() {
            let record: DrawRecord = serde_json::from_value(case["record"].clone()).unwrap();
            let failed: Vec<_> = record
                .check(case["token"].as_str())
                .into_iter()
                .filter(|check| !check.ok)
                .collect();
            let name = &case["name"];
            let is_altered = name.as_str().unwrap().starts_with("altered:");
            assert_eq!(failed.is_empty(), !is_altered, "{name}: {failed:?}");
        }
    }
}
