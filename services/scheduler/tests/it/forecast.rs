//! The forecast of a sale equals what the leader then does with the same settings.

use std::collections::BTreeMap;

use daegi_domain::{EndReason, Number, Policy, Ticket};
use daegi_simulation::{Arrivals, Limits, Sale, Visitors, simulate};

use crate::harness::{SchedulerHarness, item, user};

/// How far the demo may be from the forecast, in percent: visitors take other times than the simulated ones.
const TOLERANCE_PERCENT: u64 = 10;

const VISITORS: u32 = 400;
const CHECKOUT_SECONDS: u64 = 20;

/// What a demo did: when the last visitor was admitted, in seconds, and how many were admitted and bought.
struct Demo {
    last_admission: u64,
    admitted: u64,
    bought: u32,
}

/// A sale with the real leader: everyone joins in the first minute, is seen, and buys after 20 s.
async fn demo(policy: &str, stock: u32) -> Demo {
    let mut harness = SchedulerHarness::open(10).await;
    harness.put("concert", stock, policy).await;
    let (mut entries, mut live) = (BTreeMap::<u32, u64>::new(), BTreeMap::<u32, Number>::new());
    let mut demo = Demo { last_admission: 0, admitted: 0, bought: 0 };
    let mut left = stock;
    for second in 0..7_200_u64 {
        let joins = (0..VISITORS).filter(|n| u64::from(n * 60 / VISITORS) == second);
        for n in joins.collect::<Vec<_>>() {
            let number = harness.join("concert", &[&format!("u{n}")]).await[0];
            live.insert(n, number);
        }
        if second % 15 == 0 {
            harness.see("concert", live.values().copied()).await;
        }
        let due = entries.iter().filter(|(_, at)| **at <= second).map(|(n, _)| *n);
        for n in due.collect::<Vec<u32>>() {
            entries.remove(&n);
            let ticket = Ticket::new(item("concert"), user(&format!("u{n}")), live[&n]);
            let now = harness.clock.now_ms();
            let ended = harness.store.complete(&ticket, EndReason::Completed, now).await.unwrap();
            assert!(ended.is_ended());
            live.remove(&n);
            left -= 1;
            demo.bought += 1;
        }
        harness.put_stock("concert", left).await;
        harness.tick().await;
        let counts = harness.counts("concert").await;
        if counts.totals.admitted > demo.admitted {
            for name in harness.take_admitted().await {
                entries.insert(name[1..].parse().unwrap(), second + CHECKOUT_SECONDS);
            }
            (demo.admitted, demo.last_admission) = (counts.totals.admitted, second);
        }
        if left == 0 || (live.is_empty() && second > 60) {
            break;
        }
        harness.pass(1);
    }
    demo
}

#[tokio::test]
async fn the_forecast_of_a_sale_is_what_the_leader_then_does() {
    for (policy, stock) in [
        (r#"{"tokensPerTick":4,"graceSeconds":0}"#, 1_000),
        (r#"{"tokensPerTick":20,"maxActive":20,"graceSeconds":60}"#, 1_000),
        (r#"{"tokensPerTick":5}"#, 150),
    ] {
        let visitors = Visitors {
            no_show_percent: 0,
            buy_percent: 100,
            checkout_seconds: u32::try_from(CHECKOUT_SECONDS).unwrap(),
        };
        let sale = Sale {
            policy: serde_json::from_str::<Policy>(policy).unwrap(),
            visitors,
            ..Sale::new(Arrivals::Recorded { per_minute: vec![VISITORS] }, stock)
        };
        let forecast = simulate(&sale, &Limits::default()).unwrap();
        let demo = demo(policy, stock).await;
        assert_eq!(forecast.bought, demo.bought, "{policy}");
        assert_eq!(u64::from(forecast.admitted), demo.admitted, "{policy}");
        let forecast = forecast.last_admission_seconds.unwrap();
        let allowed = (demo.last_admission * TOLERANCE_PERCENT / 100).max(5);
        assert!(
            forecast.abs_diff(demo.last_admission) <= allowed,
            "{policy}: forecast {forecast} s, demo {} s",
            demo.last_admission
        );
    }
}
