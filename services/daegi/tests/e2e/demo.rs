//! The demo on the embedded broker: product service, order service, visitors and the sale.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use daegi_domain::Topics;
use daegi_kafka::EmbeddedBroker;
use daegi_runtime::Shutdown;
use daegi_storefront::Kafka;
use daegi_storefront::demo::{self, Demo, DemoHandles};
use daegi_storefront::load::VisitorLoad;
use daegi_storefront::product::{Phase, Plan, Progress};
use daegi_testkit::{ChildProcess, eventually, free_port};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::harness::DaegiHarness;
use daegi_testkit::child::signal;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A sale of 4 seats and a restock of 2, with visitors that order quickly.
async fn quick_demo(brokers: &str, api: &str) -> Demo {
    let kafka = Kafka { brokers: brokers.to_owned(), topics: Topics::default() };
    let restock_after = Duration::from_secs(1);
    let plan = Plan {
        stock: 4,
        restock: 2,
        restocks: 1,
        restock_after,
        linger: TEST_TIMEOUT,
        ..demo::sale_plan()
    };
    let mut demo = Demo::new(kafka, api, plan).await.unwrap();
    demo.load = VisitorLoad {
        size: 12,
        rush: Duration::from_secs(1),
        trickle: Duration::from_millis(500),
        leave_percent: 0,
        disappear_percent: 0,
        thinking_ms: 10..=50,
        ..demo.load
    };
    demo
}

async fn until(handles: &DemoHandles, what: &str, is: impl FnMut(&Progress) -> bool) -> Progress {
    let mut sale = handles.sale.clone();
    let reached = tokio::time::timeout(TEST_TIMEOUT, sale.wait_for(is)).await;
    *reached.unwrap_or_else(|_| panic!("not within {TEST_TIMEOUT:?}: {what}")).unwrap()
}

async fn order(harness: &DaegiHarness, shop: &str, pass: &str) -> Response {
    let order = harness.http.post(format!("{shop}/orders")).bearer_auth(pass);
    order.json(&json!({ "itemId": "concert" })).send().await.unwrap()
}

/// Joins as kim and waits for the pass.
async fn join_and_wait_for_pass(harness: &DaegiHarness) -> (String, String) {
    eventually(TEST_TIMEOUT, "the line is open", async || {
        harness.join("concert", "kim").await.status() == StatusCode::CREATED
    })
    .await;
    let token = harness.ticket("concert", "kim").await["token"].as_str().unwrap().to_owned();
    let pass = eventually(TEST_TIMEOUT, "kim is admitted", async || {
        harness.poll_ok("concert", &token).await["pass"].as_str().map(ToOwned::to_owned)
    })
    .await;
    (token, pass)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sale_runs_from_the_opening_over_sold_out_to_the_restock() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let args = ["--kafka", broker.bootstrap_servers(), "--token-count-to-move", "10"];
    let harness = DaegiHarness::open("memory", None, &args).await;
    let demo = quick_demo(broker.bootstrap_servers(), &harness.public).await;
    let (shop, shutdown) = (demo.orders_url.clone(), Shutdown::new());
    let (handles, tasks) = demo.start(&shutdown);

    let (token, pass) = join_and_wait_for_pass(&harness).await;
    orders_once(&harness, &shop, &pass).await;
    eventually(TEST_TIMEOUT, "the slot is free", async || {
        harness.poll_ok("concert", &token).await["status"] != "ENTERABLE"
    })
    .await;

    let sold_out = until(&handles, "sold out", |sale| sale.phase == Phase::SoldOut).await;
    assert_eq!((sold_out.stock, sold_out.restocked), (0, 0));
    eventually(TEST_TIMEOUT, "the line is SOLD_OUT", async || {
        let line = harness.http.get(harness.line("concert")).send().await.unwrap();
        line.json::<Value>().await.unwrap()["lineState"] == "SOLD_OUT"
    })
    .await;
    let sold_again = |sale: &Progress| sale.restocked > 0 && sale.phase == Phase::SoldOut;
    let end = until(&handles, "sold out again after the restock", sold_again).await;
    assert_eq!(end.sold, 6, "every seat is sold once");
    eventually(
        TEST_TIMEOUT,
        "the order service received every admission that led to an order",
        async || {
            let counts = handles.checkout.ledger().counts();
            counts.admitted >= counts.orders && counts.orders >= 6
        },
    )
    .await;

    shutdown.begin().await;
    tasks.join().await;
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
    harness.close().await;
}

/// A repeated order with one pass returns the first order, and a forged pass is rejected.
async fn orders_once(harness: &DaegiHarness, shop: &str, pass: &str) {
    let first = eventually(TEST_TIMEOUT, "the shop knows what is on sale", async || {
        let answer = order(harness, shop, pass).await;
        (answer.status() != StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
    })
    .await;
    assert_eq!(first.status(), StatusCode::CREATED);
    let first: Value = first.json().await.unwrap();
    assert_eq!(first["userId"], "kim");
    let again = order(harness, shop, pass).await;
    assert_eq!(again.status(), StatusCode::OK);
    assert_eq!(again.json::<Value>().await.unwrap(), first);
    let forged = order(harness, shop, &pass.replace('.', "_")).await;
    assert_eq!(forged.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(forged.headers()["content-type"], "application/problem+json");
    assert_eq!(forged.json::<Value>().await.unwrap()["code"], "PASS_INVALID");
}

#[test]
fn the_demo_prints_its_progress_and_stops_cleanly() {
    let address = |port: u16| format!("127.0.0.1:{port}");
    let (public, internal) = (address(free_port()), address(free_port()));
    let child = Command::new(env!("CARGO_BIN_EXE_daegi"))
        .args(["--demo", "--public-addr", &public, "--internal-addr", &internal])
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut child = ChildProcess::from(child);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    while !printed.contains(" · entered ") {
        assert_ne!(
            lines.read_line(&mut printed).unwrap(),
            0,
            "the process exited early: {printed}"
        );
    }
    for part in ["/shop\n", "/admin/#token=", "/orders", "on sale: 500 seats"] {
        assert!(printed.contains(part), "{part} is missing in\n{printed}");
    }
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
