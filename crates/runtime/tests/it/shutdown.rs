//! The shutdown of a process.

use std::time::Duration;

use daegi_runtime::Shutdown;

const TEST_TIMEOUT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_panicking_component_ends_the_process() {
    let shutdown = Shutdown::new();
    let token = shutdown.token().clone();
    shutdown.spawn("other", async move { token.cancelled().await });
    shutdown.spawn("doomed", async { panic!("on purpose") });
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
    assert!(shutdown.token().is_cancelled());
    assert!(shutdown.draining().is_cancelled());
    assert!(shutdown.has_failed());
}

#[tokio::test]
async fn a_component_that_returns_ends_nothing() {
    let shutdown = Shutdown::new();
    shutdown.spawn("brief", async {});
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
    assert!(!shutdown.token().is_cancelled());
    assert!(!shutdown.has_failed());
}

#[tokio::test(start_paused = true)]
async fn readiness_ends_before_the_listeners_do() {
    let shutdown = Shutdown::new().with_readiness_delay(Duration::from_secs(1));
    let observer = shutdown.clone();
    let between = async {
        observer.draining().cancelled().await;
        observer.token().is_cancelled()
    };
    let (_, stopped_already) = tokio::join!(shutdown.begin(), between);
    assert!(!stopped_already);
    assert!(shutdown.token().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_tasks_has_a_deadline() {
    let shutdown = Shutdown::new();
    shutdown.spawn("stuck", std::future::pending());
    let stuck = shutdown.wait(TEST_TIMEOUT).await.unwrap_err();
    assert!(stuck.to_string().contains("still running"), "{stuck}");
}
