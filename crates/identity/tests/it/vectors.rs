//! The shared vectors, `sdk/vectors/identity.json`.

use std::path::Path;

use daegi_identity::{IdentityVerifier, RefreshTimes};
use daegi_runtime::Shutdown;
use daegi_runtime::config::{IdentityConfig, JwksLocation};
use serde_json::{Value, json};

fn vectors() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/vectors/identity.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test]
async fn every_assertion_proves_its_user_or_fails_for_its_reason() {
    let vectors = vectors();
    let (shutdown, directory) = (Shutdown::new(), tempfile::tempdir().unwrap());
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() > 40, "{}", cases.len());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for case in cases {
        let file = directory.path().join(text(&case["keys"]));
        std::fs::write(&file, vectors["keySets"][&text(&case["keys"])].to_string()).unwrap();
        let config = IdentityConfig {
            jwks: JwksLocation::File(file),
            issuer: text(&vectors["issuer"]),
            audience: text(&vectors["audience"]),
            claim: text(&case["claim"]),
        };
        let verifier = IdentityVerifier::start(&config, RefreshTimes::default(), &shutdown);
        let now = case["nowMs"].as_u64().unwrap();
        let verified = verifier.verify(case["assertion"].as_str().unwrap(), now).await;
        let outcome = match verified {
            Ok(identity) => {
                let lane = identity.lane.as_ref().map(|lane| lane.as_str());
                json!({ "user": identity.user.as_str(), "lane": lane })
            }
            Err(error) => {
                let name = format!("{error:?}");
                json!({ "error": name.split('(').next() })
            }
        };
        assert_eq!(outcome, case["expect"], "{}", case["name"]);
    }
    shutdown.stop_now();
}
