//! One test for the whole life of a broker, because each start costs seconds and memory.

use std::time::Duration;

use daegi_testkit::{eventually, kafka_or_skip};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_broker_keeps_its_port_after_a_stop_and_after_a_kill() {
    let Some(mut kafka) = kafka_or_skip().await else {
        return;
    };
    let bootstrap = kafka.bootstrap();
    assert!(answers(&bootstrap).await);

    kafka.stop();
    assert!(!answers(&bootstrap).await);
    kafka.start_again().await.unwrap();
    assert_eq!(kafka.bootstrap(), bootstrap);
    assert!(answers(&bootstrap).await);

    kafka.kill();
    assert!(!answers(&bootstrap).await);
    kafka.start_again().await.unwrap();
    assert_eq!(kafka.bootstrap(), bootstrap);
    assert!(answers(&bootstrap).await);

    drop(kafka);
    eventually(Duration::from_secs(5), "the port is closed", async || !answers(&bootstrap).await)
        .await;
}

async fn answers(bootstrap: &str) -> bool {
    TcpStream::connect(bootstrap).await.is_ok()
}
