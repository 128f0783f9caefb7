//! When keys are fetched.

use std::time::Duration;

use daegi_identity::{IdentityError, IdentityVerifier, RefreshTimes};
use daegi_runtime::Shutdown;
use daegi_testkit::eventually;

use crate::issuer::Issuer;

const TIMEOUT: Duration = Duration::from_secs(10);
/// No unknown key id causes a fetch in the time of a test.
const RARE: RefreshTimes = RefreshTimes {
    max_age: Duration::from_secs(3_600),
    min_interval: Duration::from_secs(3_600),
    unknown_for: Duration::from_secs(3_600),
    wait: Duration::from_secs(10),
};
/// Every unknown key id causes a fetch.
const FREQUENT: RefreshTimes = RefreshTimes {
    max_age: Duration::from_secs(3_600),
    min_interval: Duration::from_millis(10),
    unknown_for: Duration::ZERO,
    wait: Duration::from_secs(10),
};

async fn verify(
    verifier: &IdentityVerifier,
    issuer: &Issuer,
    case: &str,
) -> Result<String, IdentityError> {
    let (assertion, now) = issuer.case(case);
    verifier.verify(&assertion, now).await.map(|identity| identity.user.as_str().to_owned())
}

#[tokio::test]
async fn a_flood_of_unknown_key_ids_causes_one_fetch() {
    let shutdown = Shutdown::new();
    let issuer = Issuer::start("first", &shutdown).await;
    let verifier = IdentityVerifier::start(&issuer.config, RARE, &shutdown);
    // The first assertion waits for the first fetch.
    assert_eq!(verify(&verifier, &issuer, "ES256").await.as_deref(), Ok("kim"));
    for _ in 0..500 {
        let refused = verify(&verifier, &issuer, "an unknown key").await;
        assert_eq!(refused, Err(IdentityError::UnknownKey));
    }
    let refused = verify(&verifier, &issuer, "no key id and several keys").await;
    assert_eq!(refused, Err(IdentityError::NoKeyId));
    assert_eq!(issuer.fetches(), 1);
    shutdown.stop_now();
    shutdown.wait(TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_rotated_key_is_fetched_when_an_assertion_names_it() {
    let shutdown = Shutdown::new();
    let issuer = Issuer::start("first", &shutdown).await;
    let verifier = IdentityVerifier::start(&issuer.config, FREQUENT, &shutdown);
    assert_eq!(verify(&verifier, &issuer, "RS256").await.as_deref(), Ok("kim"));
    issuer.publish("rotated").await;
    eventually(TIMEOUT, "the next key is known", async || {
        verify(&verifier, &issuer, "the next key after the rotation").await.is_ok()
    })
    .await;
    let former = verify(&verifier, &issuer, "RS256").await;
    assert_eq!(former, Err(IdentityError::UnknownKey), "its key is published no more");
    shutdown.stop_now();
}

#[tokio::test]
async fn without_keys_an_assertion_is_refused_as_unavailable_until_the_issuer_is_back() {
    let shutdown = Shutdown::new();
    let issuer = Issuer::start("first", &shutdown).await;
    issuer.set_down(true);
    let verifier = IdentityVerifier::start(&issuer.config, FREQUENT, &shutdown);
    let refused = verify(&verifier, &issuer, "ES256").await;
    assert_eq!(refused, Err(IdentityError::KeysUnavailable));
    issuer.set_down(false);
    eventually(TIMEOUT, "the keys are fetched", async || {
        verify(&verifier, &issuer, "ES256").await.is_ok()
    })
    .await;
    shutdown.stop_now();
}

#[tokio::test]
async fn known_keys_outlive_an_outage_and_unknown_ones_are_not_called_unknown() {
    let shutdown = Shutdown::new();
    let issuer = Issuer::start("first", &shutdown).await;
    let verifier = IdentityVerifier::start(&issuer.config, FREQUENT, &shutdown);
    assert_eq!(verify(&verifier, &issuer, "EdDSA").await.as_deref(), Ok("kim"));
    issuer.set_down(true);
    eventually(TIMEOUT, "a fetch fails", async || {
        let unknown = verify(&verifier, &issuer, "an unknown key").await;
        unknown == Err(IdentityError::KeysUnavailable)
    })
    .await;
    assert_eq!(verify(&verifier, &issuer, "EdDSA").await.as_deref(), Ok("kim"));
    shutdown.stop_now();
}
