//! The neighbours around a waiting room: every arrow of the circle, on the embedded broker.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use daegi::circle::{self, Circle, View};
use daegi_domain::Topics;
use daegi_kafka::EmbeddedBroker;
use daegi_neighbours::Kafka;
use daegi_neighbours::crowd::Crowd;
use daegi_neighbours::product::{Phase, Plan, Progress};
use daegi_runtime::Shutdown;
use daegi_testkit::{Process, eventually, free_port};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::room::Room;
use daegi_testkit::process::signal;

const SOON: Duration = Duration::from_secs(60);

/// A sale of four seats and two more, and a crowd that decides quickly.
async fn quick(brokers: &str, api: &str) -> Circle {
    let kafka = Kafka { brokers: brokers.to_owned(), topics: Topics::default() };
    let restock_after = Duration::from_secs(1);
    let plan =
        Plan { stock: 4, restock: 2, restocks: 1, restock_after, linger: SOON, ..circle::plan() };
    let mut circle = Circle::new(kafka, api, plan).await.unwrap();
    circle.crowd = Crowd {
        size: 12,
        rush: Duration::from_secs(1),
        trickle: Duration::from_millis(500),
        leave_percent: 0,
        vanish_percent: 0,
        thinking_ms: 10..=50,
        ..circle.crowd
    };
    circle
}

async fn until(view: &View, what: &str, is: impl FnMut(&Progress) -> bool) -> Progress {
    let mut sale = view.sale.clone();
    let reached = tokio::time::timeout(SOON, sale.wait_for(is)).await;
    *reached.unwrap_or_else(|_| panic!("not within {SOON:?}: {what}")).unwrap()
}

async fn order(room: &Room, shop: &str, pass: &str) -> Response {
    let order = room.http.post(format!("{shop}/orders")).bearer_auth(pass);
    order.json(&json!({ "itemId": "concert" })).send().await.unwrap()
}

/// Kim joins first and waits for her pass.
async fn let_in(room: &Room) -> (String, String) {
    eventually(SOON, "the line is open", async || {
        room.join("concert", "kim").await.status() == StatusCode::CREATED
    })
    .await;
    let token = room.ticket("concert", "kim").await["token"].as_str().unwrap().to_owned();
    let pass = eventually(SOON, "it is kim's turn", async || {
        room.poll_ok("concert", &token).await["pass"].as_str().map(ToOwned::to_owned)
    })
    .await;
    (token, pass)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_circle_turns_from_the_opening_over_sold_out_to_the_restock() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let args = ["--kafka", broker.bootstrap_servers(), "--token-count-to-move", "10"];
    let room = Room::open("memory", None, &args).await;
    let circle = quick(broker.bootstrap_servers(), &room.public).await;
    let (shop, shutdown) = (circle.order_desk.clone(), Shutdown::new());
    let (view, neighbours) = circle.start(&shutdown);

    let (token, pass) = let_in(&room).await;
    orders_once(&room, &shop, &pass).await;
    eventually(SOON, "the slot is free", async || {
        room.poll_ok("concert", &token).await["status"] != "ENTERABLE"
    })
    .await;

    let sold_out = until(&view, "sold out", |sale| sale.phase == Phase::SoldOut).await;
    assert_eq!((sold_out.stock, sold_out.restocked), (0, 0));
    eventually(SOON, "the line says so", async || {
        let line = room.http.get(room.line("concert")).send().await.unwrap();
        line.json::<Value>().await.unwrap()["lineState"] == "SOLD_OUT"
    })
    .await;
    let gone = |sale: &Progress| sale.restocked > 0 && sale.phase == Phase::SoldOut;
    let end = until(&view, "sold out again after the restock", gone).await;
    assert_eq!(end.sold, 6, "every seat is sold once");
    eventually(SOON, "the order service heard of everybody who ordered", async || {
        let counts = view.desk.book().counts();
        counts.let_in >= counts.orders && counts.orders >= 6
    })
    .await;

    shutdown.begin().await;
    neighbours.gone().await;
    shutdown.wait(SOON).await.unwrap();
    room.close().await;
}

/// The same pass is the same order, and a bad one is none.
async fn orders_once(room: &Room, shop: &str, pass: &str) {
    let first = eventually(SOON, "the shop knows what is on sale", async || {
        let answer = order(room, shop, pass).await;
        (answer.status() != StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
    })
    .await;
    assert_eq!(first.status(), StatusCode::CREATED);
    let first: Value = first.json().await.unwrap();
    assert_eq!(first["userId"], "kim");
    let again = order(room, shop, pass).await;
    assert_eq!(again.status(), StatusCode::OK);
    assert_eq!(again.json::<Value>().await.unwrap(), first);
    let forged = order(room, shop, &pass.replace('.', "_")).await;
    assert_eq!(forged.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(forged.headers()["content-type"], "application/problem+json");
    assert_eq!(forged.json::<Value>().await.unwrap()["code"], "PASS_INVALID");
}

#[test]
fn the_demo_tells_what_happens_and_ends_in_order() {
    let address = |port: u16| format!("127.0.0.1:{port}");
    let (public, internal) = (address(free_port()), address(free_port()));
    let child = Command::new(env!("CARGO_BIN_EXE_daegi"))
        .args(["--demo", "--public-addr", &public, "--internal-addr", &internal])
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut child = Process::from(child);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    while !printed.contains(" · inside ") {
        assert_ne!(lines.read_line(&mut printed).unwrap(), 0, "it ended early: {printed}");
    }
    for part in ["/shop\n", "/admin/#token=", "/orders", "on sale: 500 seats"] {
        assert!(printed.contains(part), "{part} is missing in\n{printed}");
    }
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
