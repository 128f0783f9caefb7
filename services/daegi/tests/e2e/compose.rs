//! The services of `docker-compose.yml` as plain processes with the same environment: users call them
//! through the same nginx, and the same Prometheus rules fire on outages.

mod fleet;
mod metrics;
mod prometheus;
mod virtual_users;

use std::time::Duration;

use daegi_kafka::{Publisher, Record};
use daegi_testkit::eventually;

use fleet::ComposeFleet;
use virtual_users::VirtualUsers;

/// Covers scrapes and rule evaluations at intervals of 1 s on a machine that runs other tests, too.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn the_compose_fleet_serves_users_and_its_alerts_fire() {
    let Some(mut compose) = ComposeFleet::start().await else { return };
    let users = VirtualUsers::new(&compose);
    users.buy("kim").await;
    users.follow("lee").await;
    the_public_port_serves_only_public_paths(&compose).await;
    users_do_not_notice_a_killed_pod(&mut compose, &users).await;
    health_checks_report_state(&mut compose);

    for alert in ["DaegiNobodyLeads", "DaegiNoConsumer", "DaegiOutboxGrowing", "DaegiErrors"] {
        compose.prometheus.is_quiet(alert).await;
    }
    no_scheduler_leads(&compose).await;
    kafka_is_unavailable(&mut compose, &users).await;
    the_consumer_is_killed(&mut compose).await;
    redis_is_unavailable(&mut compose, &users).await;
    metrics::all_exist(&compose.prometheus).await;
}

async fn the_public_port_serves_only_public_paths(compose: &ComposeFleet) {
    let status = async |url: String| {
        let response = compose.http.get(url).bearer_auth(&compose.admin_token).send().await;
        response.unwrap().status().as_u16()
    };
    assert_eq!(status(format!("{}/wait/concert", compose.public)).await, 200);
    assert_eq!(status(format!("{}/metrics", compose.public)).await, 404);
    for path in ["/internal/admin/v1/leader", "/admin/"] {
        assert_eq!(status(format!("{}{path}", compose.public)).await, 404, "{path}");
        assert_eq!(status(format!("{}{path}", compose.internal)).await, 200, "{path}");
    }
}

async fn users_do_not_notice_a_killed_pod(compose: &mut ComposeFleet, users: &VirtualUsers) {
    compose.process("api-1").sigkill();
    for n in 0..20 {
        users.join(&format!("calm-{n}")).await;
    }
    compose.process("api-1").start_again();
    compose.process("api-1").wait_ready().await;
}

/// Runs the health-check command of the images.
fn health_checks_report_state(compose: &mut ComposeFleet) {
    for name in ["api-2", "scheduler-1", "consumer"] {
        assert!(compose.healthcheck(name).success(), "{name}");
    }
    compose.process("api-2").sigkill();
    assert_eq!(compose.healthcheck("api-2").code(), Some(1));
    compose.process("api-2").start_again();
}

/// Holds the lease, so that no scheduler leads.
async fn no_scheduler_leads(compose: &ComposeFleet) {
    let lease = "daegi:{p00}:lease";
    compose.redis.command::<()>(&["SET", lease, "test"]).await.unwrap();
    compose.prometheus.fires("DaegiNobodyLeads").await;
    compose.redis.command::<()>(&["DEL", lease]).await.unwrap();
    compose.prometheus.is_quiet("DaegiNobodyLeads").await;
}

async fn kafka_is_unavailable(compose: &mut ComposeFleet, users: &VirtualUsers) {
    compose.kafka.kill();
    for n in 0..20 {
        users.join(&format!("unpublished-{n}")).await;
    }
    compose.prometheus.fires("DaegiOutboxGrowing").await;
    compose.kafka.start_again().await.unwrap();
    compose.prometheus.is_quiet("DaegiOutboxGrowing").await;
}

async fn the_consumer_is_killed(compose: &mut ComposeFleet) {
    compose.process("consumer").sigkill();
    compose.prometheus.fires("DaegiNoConsumer").await;
    compose.process("consumer").start_again();
    compose.prometheus.is_quiet("DaegiNoConsumer").await;
}

/// Also causes a dead letter and a retry, so that every metric has been recorded once.
async fn redis_is_unavailable(compose: &mut ComposeFleet, users: &VirtualUsers) {
    let publisher = Publisher::new(&compose.kafka.bootstrap()).unwrap();
    let record = |body: &str| Record::raw("order.closed", "concert", Some(body.as_bytes()));
    publisher.publish(&[record("no JSON")]).await.unwrap();
    let consumer = compose.process("consumer");
    eventually(TEST_TIMEOUT, "a dead letter", async || {
        consumer.metric(daegi_kafka::metrics::DEAD_LETTERS).await > 0.0
    })
    .await;

    let ticket = users.join("patient").await;
    compose.redis.stop();
    publisher.publish(&[users.order_closed(&ticket)]).await.unwrap();
    let (prometheus, consumer) = (&compose.prometheus, &compose.processes["consumer"]);
    eventually(TEST_TIMEOUT, "requests fail and the alert fires", async || {
        for _ in 0..20 {
            users.poll(&ticket).await;
        }
        prometheus.is_firing("DaegiErrors").await
            && consumer.metric(daegi_kafka::metrics::RETRIES).await > 0.0
    })
    .await;
    compose.redis.start_again().await.unwrap();
    compose.prometheus.is_quiet("DaegiErrors").await;
}
