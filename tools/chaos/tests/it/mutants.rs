//! Every mutant patch still applies to the sources: a patch that does not apply proves nothing.

use std::path::Path;
use std::process::Command;

#[test]
fn every_mutant_applies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let patches = std::fs::read_dir(root.join("tools/chaos/mutants")).unwrap();
    let patches = patches.map(|entry| entry.unwrap().path());
    let patches: Vec<_> =
        patches.filter(|path| path.extension().is_some_and(|end| end == "patch")).collect();
    assert!(patches.len() >= 6, "{patches:?}");
    for patch in patches {
        let mut dry = Command::new("git");
        let output =
            dry.args(["apply", "--check"]).arg(&patch).current_dir(&root).output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", patch.display());
    }
}
