//! Checks of the gate against the baseline handler: passes that the pod has verified before, and passes that it sees for the
//! first time.

use daegi_domain::{ItemId, Number, PassKeys, Ticket, TicketKeys, UserId};

use super::fixture::{ApiFixture, PASS_KEY, now_ms};
use super::wrk::{Load, Rounds};
use super::{Options, rotation};
use crate::measurement::{Measurement, Target};
use crate::report::progress;

const CONNECTIONS: usize = 64;
/// Users in the shop at the same time.
const KNOWN: usize = 2_000;
/// Far more than a pod remembers, so that a pass is forgotten before its next turn.
const UNKNOWN: usize = 100_000;
const PASS_MS: u64 = 3_600_000;

pub(super) async fn measure(
    fixture: &ApiFixture,
    options: &Options,
) -> anyhow::Result<Vec<Measurement>> {
    let pod = fixture.internal_pod()?;
    pod.wait_until_ready("/readyz").await?;
    let cookies = cookies(&fixture.keys)?;
    let known = Load::cookies("/gate/concert", &cookies[..KNOWN])?;
    let unknown = Load::cookies("/gate/concert", &cookies)?;
    let mut rounds: [Rounds; 3] = Default::default();
    for round in 0..=options.rounds {
        for load in rotation(round, rounds.len()) {
            let result = match load {
                0 => known.run(&pod, CONNECTIONS, options.seconds).await?,
                1 => unknown.run(&pod, CONNECTIONS, options.seconds).await?,
                _ => known.run(&fixture.baseline, CONNECTIONS, options.seconds).await?,
            };
            if round > 0 {
                rounds[load].0.push(result);
            }
        }
        progress(&format!("gate: round {round} of {}", options.rounds));
    }
    let [known, unknown, baseline] = &rounds;
    let rate = baseline.per_second();
    Ok(vec![
        Measurement::ratio("gate, known pass vs baseline handler", known.per_second() / rate, 0.80)
            .with_detail(known.compared_with(baseline))
            .with_rounds(known.ratios(baseline)),
        Measurement::new(
            "gate, CPU of a first check",
            unknown.median(|result| result.cpu_us),
            "µs",
            Target::AtMost(500.0),
        )
        .with_detail(unknown.compared_with(baseline)),
    ])
}

fn cookies(tickets: &TicketKeys) -> anyhow::Result<Vec<String>> {
    let (passes, item) = (PassKeys::from_pem(PASS_KEY)?, ItemId::parse("concert")?);
    let now = now_ms();
    let cookie = |n: usize| {
        let user = UserId::parse(&format!("u{n:09}"))?;
        let ticket = Ticket::new(item.clone(), user, Number(n as u64));
        let pass = passes.pass((&ticket, None), tickets.uuid(&ticket), now, now + PASS_MS);
        anyhow::Ok(format!("daegi-pass-concert={pass}"))
    };
    (0..UNKNOWN).map(cookie).collect()
}
