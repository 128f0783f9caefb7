//! What `docker compose up` starts, as plain processes with the same environment: people go through
//! the same nginx, the same Prometheus watches, and what should wake somebody up does.

mod metrics;
mod people;
mod prometheus;
mod stage;

use std::time::Duration;

use daegi_kafka::{Publisher, Record};
use daegi_testkit::eventually;

use people::People;
use stage::Stage;

/// Scrapes and evaluations are a second apart here, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_of_compose_serves_people_and_wakes_operators() {
    let Some(mut stage) = Stage::open().await else { return };
    let people = People::of(&stage);
    people.buy("kim").await;
    people.listen("lee").await;
    only_people_are_let_in_by_the_front_door(&stage).await;
    a_pod_that_dies_is_not_noticed(&mut stage, &people).await;
    services_say_how_they_are(&mut stage);

    for alert in ["DaegiNobodyLeads", "DaegiNoConsumer", "DaegiOutboxGrowing", "DaegiErrors"] {
        stage.prometheus.is_quiet(alert).await;
    }
    nobody_leads(&stage).await;
    kafka_is_gone(&mut stage, &people).await;
    the_consumer_is_gone(&mut stage).await;
    redis_is_gone(&mut stage, &people).await;
    metrics::all_exist(&stage.prometheus).await;
}

async fn only_people_are_let_in_by_the_front_door(stage: &Stage) {
    let status = async |url: String| {
        let answer = stage.http.get(url).bearer_auth(&stage.admin_token).send().await;
        answer.unwrap().status().as_u16()
    };
    assert_eq!(status(format!("{}/wait/concert", stage.public)).await, 200);
    assert_eq!(status(format!("{}/metrics", stage.public)).await, 404);
    for path in ["/internal/admin/v1/leader", "/admin/"] {
        assert_eq!(status(format!("{}{path}", stage.public)).await, 404, "{path}");
        assert_eq!(status(format!("{}{path}", stage.internal)).await, 200, "{path}");
    }
}

async fn a_pod_that_dies_is_not_noticed(stage: &mut Stage, people: &People) {
    stage.member("api-1").sigkill();
    for person in 0..20 {
        people.join(&format!("calm-{person}")).await;
    }
    stage.member("api-1").start_again();
    stage.member("api-1").wait_ready().await;
}

/// As the images are asked.
fn services_say_how_they_are(stage: &mut Stage) {
    for name in ["api-2", "scheduler-1", "consumer"] {
        assert!(stage.healthcheck(name).success(), "{name}");
    }
    stage.member("api-2").sigkill();
    assert_eq!(stage.healthcheck("api-2").code(), Some(1));
    stage.member("api-2").start_again();
}

/// Somebody has taken the lease who will not let anybody in.
async fn nobody_leads(stage: &Stage) {
    let lease = "daegi:{p00}:lease";
    stage.redis.command::<()>(&["SET", lease, "nobody"]).await.unwrap();
    stage.prometheus.fires("DaegiNobodyLeads").await;
    stage.redis.command::<()>(&["DEL", lease]).await.unwrap();
    stage.prometheus.is_quiet("DaegiNobodyLeads").await;
}

async fn kafka_is_gone(stage: &mut Stage, people: &People) {
    stage.kafka.kill();
    for person in 0..20 {
        people.join(&format!("untold-{person}")).await;
    }
    stage.prometheus.fires("DaegiOutboxGrowing").await;
    stage.kafka.start_again().await.unwrap();
    stage.prometheus.is_quiet("DaegiOutboxGrowing").await;
}

async fn the_consumer_is_gone(stage: &mut Stage) {
    stage.member("consumer").sigkill();
    stage.prometheus.fires("DaegiNoConsumer").await;
    stage.member("consumer").start_again();
    stage.prometheus.is_quiet("DaegiNoConsumer").await;
}

/// Also leaves a trace of everything that only ever happens in trouble.
async fn redis_is_gone(stage: &mut Stage, people: &People) {
    let publisher = Publisher::new(&stage.kafka.bootstrap()).unwrap();
    let said = |body: &str| Record::raw("order.closed", "concert", Some(body.as_bytes()));
    publisher.publish(&[said("no JSON")]).await.unwrap();
    let consumer = stage.member("consumer");
    eventually(SOON, "a dead letter", async || {
        consumer.metric(daegi_kafka::metrics::DEAD_LETTERS).await > 0.0
    })
    .await;

    let ticket = people.join("patient").await;
    stage.redis.stop();
    publisher.publish(&[people.order_closed(&ticket)]).await.unwrap();
    let (prometheus, consumer) = (&stage.prometheus, &stage.members["consumer"]);
    eventually(SOON, "people are refused, and somebody hears of it", async || {
        for _ in 0..20 {
            people.ask(&ticket).await;
        }
        prometheus.is_firing("DaegiErrors").await
            && consumer.metric(daegi_kafka::metrics::RETRIES).await > 0.0
    })
    .await;
    stage.redis.start_again().await.unwrap();
    stage.prometheus.is_quiet("DaegiErrors").await;
}
