//! Regenerates `schemas/*.json` from the event types: `cargo run -p daegi-kafka --example schemas`.
//! A test fails while they differ.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for schema in daegi_kafka::schema::all() {
        std::fs::write(folder.join(schema.file), schema.text)?;
    }
    Ok(())
}
