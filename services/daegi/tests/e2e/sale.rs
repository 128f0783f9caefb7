//! Stock runs out and comes back.

use std::time::Duration;

use daegi_testkit::eventually;
use reqwest::StatusCode;
use serde_json::Value;

use crate::room::Room;

#[tokio::test(flavor = "multi_thread")]
async fn sold_out_stops_admission_tells_everybody_and_a_restock_goes_on() {
    for room in Room::each().await {
        room.stock("concert", 1000).await;
        let mut tokens = Vec::new();
        for person in 0..100 {
            let ticket = room.ticket("concert", &format!("person-{person}")).await;
            tokens.push(ticket["token"].as_str().unwrap().to_owned());
        }
        room.quota(7).await;
        room.until_entered("concert", 14).await;
        room.stock("concert", 0).await;
        everybody_hears_of_it(&room, &tokens).await;
        let inside = room.counts("concert").await.1;

        let refused = room.join("concert", "late").await;
        assert_eq!(refused.status(), StatusCode::CONFLICT, "{}", room.name);
        assert_eq!(refused.json::<Value>().await.unwrap()["code"], "SOLD_OUT", "{}", room.name);
        several_ticks(&room).await;
        assert_eq!(room.counts("concert").await.1, inside, "{}: nobody since", room.name);

        room.stock("concert", 1000).await;
        room.until_entered("concert", 100).await;
        room.ticket("concert", "late").await;
        room.close().await;
    }
}

async fn everybody_hears_of_it(room: &Room, tokens: &[String]) {
    let last = tokens.last().unwrap();
    eventually(Duration::from_secs(5), "polls say SOLD_OUT", || async {
        room.poll_ok("concert", last).await["lineState"] == "SOLD_OUT"
    })
    .await;
    for token in tokens {
        let ticket = room.poll_ok("concert", token).await;
        assert_eq!(ticket["lineState"], "SOLD_OUT", "{}", room.name);
    }
}

/// Ticks have gone by when a line that may move has moved several times.
async fn several_ticks(room: &Room) {
    room.stock("clock", 1000).await;
    for person in 0..21 {
        room.ticket("clock", &format!("tick-{person}")).await;
    }
    room.until_entered("clock", 21).await;
}
