//! Invitation codes for the lanes of a run, made by the admin API.

use std::collections::HashMap;
use std::time::Duration;

use daegi_domain::rfc3339;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::fleet::ChaosFleet;
use super::recorder::{Recorder, now};
use crate::history::{Entry, IssuedCode, ItemSetup};

/// Codes are valid for longer than any run, in ms.
const VALID_MS: u64 = 24 * 3_600_000;

/// The uses of the only code of the last lane with a weight. All other codes have one use.
const SHARED_USES: u32 = 10_000;

const ADMIN_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The codes of a lane, in the order in which they are given to users.
pub(super) type Codes = HashMap<(String, u8), Vec<String>>;

/// Makes the codes for all lanes: `users` with a single use for each lane, and one with many uses for the lane `press`.
pub(super) async fn create(
    fleet: &ChaosFleet,
    items: &[ItemSetup],
    users: usize,
    recorder: &Recorder,
) -> anyhow::Result<Codes> {
    let mut all = Codes::new();
    for item in items {
        for (lane, number) in item.lanes.iter().zip(1..) {
            let (count, uses) =
                if lane.name == "press" { (1, SHARED_USES) } else { (users.max(1), 1) };
            let body = json!({
                "lane": lane.name, "count": count, "usesEach": uses,
                "expiresAt": rfc3339(now() + VALID_MS),
            });
            let codes = request(fleet, &item.item, &body).await?;
            for code in &codes {
                let (item, code) = (item.item.clone(), code.clone());
                recorder.write(&Entry::Code(IssuedCode { item, code, lane: number, uses }));
            }
            all.insert((item.item.clone(), number), codes);
        }
    }
    Ok(all)
}

async fn request(fleet: &ChaosFleet, item: &str, body: &Value) -> anyhow::Result<Vec<String>> {
    let (path, deadline) =
        (format!("waiting-item/{item}/invitations"), Instant::now() + ADMIN_TIMEOUT);
    loop {
        for node in &fleet.schedulers {
            let reply = node.admin(Method::POST, &path, body.clone()).await;
            if let Some(codes) = reply.as_ref().and_then(|reply| reply["codes"].as_array()) {
                return Ok(codes
                    .iter()
                    .filter_map(|code| Some(code.as_str()?.to_owned()))
                    .collect());
            }
        }
        anyhow::ensure!(Instant::now() < deadline, "no scheduler makes codes for {item}");
        sleep(RETRY_INTERVAL).await;
    }
}
