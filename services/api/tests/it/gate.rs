//! The gate for proxies.

use std::time::Duration;

use axum::http::Method;
use daegi_domain::Policy;
use serde_json::Value;

use crate::harness::{Harness, TestResponse, request};

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");

/// An api with users who were admitted to two items.
struct Gate {
    harness: Harness,
    kim: Value,
    lee: Value,
    /// Of another item.
    other: Value,
}

impl Gate {
    async fn start() -> Self {
        let public = "https://wait.example".to_owned();
        let harness = Harness::with("concert", |deps| deps.public_url = public).await;
        let policy = Policy { pass_ttl_seconds: 100, ..Policy::default() };
        harness.put("concert", 1000, true, Some(policy)).await;
        harness.put_item("play", 1000, true).await;
        let mut admitted = Vec::new();
        for (item, user) in [("concert", "kim"), ("concert", "lee"), ("play", "kim")] {
            let token = harness.token(item, user).await;
            harness.admit(item, 1).await;
            admitted.push(harness.until_status(item, &token, "ENTERABLE").await);
        }
        let [kim, lee, other] = admitted.try_into().unwrap();
        Self { harness, kim, lee, other }
    }

    async fn check(&self, uri: &str, headers: &[(&str, &str)]) -> TestResponse {
        self.harness.call(request(Method::GET, uri, headers, "")).await
    }
}

fn pass(ticket: &Value) -> &str {
    ticket["pass"].as_str().unwrap()
}

fn cookie(ticket: &Value) -> String {
    format!("daegi-pass-{}={}", ticket["itemId"].as_str().unwrap(), pass(ticket))
}

#[tokio::test(start_paused = true)]
async fn a_pass_is_allowed_with_headers_that_name_the_ticket_until_it_expires() {
    let gate = Gate::start().await;
    let (cookie, bearer) = (cookie(&gate.kim), format!("Bearer {}", pass(&gate.kim)));
    let number = gate.harness.number("concert", gate.kim["token"].as_str().unwrap()).0.to_string();
    for source in
        [("cookie", &*cookie), ("authorization", &bearer), ("daegi-pass", pass(&gate.kim))]
    {
        // The first check verifies the pass, the second one knows it.
        for _ in 0..2 {
            let allowed = gate.check("/gate/concert", &[source]).await;
            assert_eq!(allowed.status.as_u16(), 200, "{}", allowed.text);
            let named =
                ["daegi-user", "daegi-number", "daegi-lane"].map(|name| allowed.header(name));
            assert_eq!(named, ["kim", &*number, "standard"]);
        }
    }
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::HEAD] {
        let headers = [("cookie", &*cookie)];
        let allowed = gate.harness.call(request(method, "/gate/concert", &headers, "")).await;
        assert_eq!(allowed.status.as_u16(), 200);
    }
    gate.harness.clock.advance(Duration::from_secs(106));
    gate.check("/gate/concert", &[("cookie", &cookie)]).await.assert_refused(401, "PASS_EXPIRED");
    gate.harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn no_pass_a_forged_one_and_one_of_another_item_are_refused() {
    let gate = Gate::start().await;
    let own = pass(&gate.kim);
    let (start, _) = own.rsplit_once('.').unwrap();
    let (_, of_lee) = pass(&gate.lee).rsplit_once('.').unwrap();
    let forged = format!("daegi-pass-concert={start}.{of_lee}");
    let moved = cookie(&gate.other).replace("daegi-pass-play", "daegi-pass-concert");
    // A known pass must not open another item.
    gate.check("/gate/play", &[("cookie", &cookie(&gate.other))]).await;
    for (cookie, status, code) in [
        ("", 401, "PASS_MISSING"),
        (&*forged, 401, "PASS_INVALID"),
        (&moved, 403, "PASS_OTHER_ITEM"),
        ("daegi-pass-concert=x", 401, "PASS_INVALID"),
        (&cookie(&gate.other), 401, "PASS_MISSING"),
    ] {
        gate.check("/gate/concert", &[("cookie", cookie)]).await.assert_refused(status, code);
        let for_nginx = gate.check("/gate/concert?deny=401", &[("cookie", cookie)]).await;
        for_nginx.assert_refused(401, code);
        let appended = gate.check("/gate/concert/x?pass=x&deny=no", &[("cookie", "")]).await;
        appended.assert_refused(401, "PASS_INVALID");
    }
    gate.check("/gate/con*cert", &[]).await.assert_refused(404, "ITEM_NOT_FOUND");
    gate.harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_browser_without_a_pass_is_sent_to_the_waiting_page_with_its_way_back() {
    let gate = Gate::start().await;
    let page = "https://wait.example/wait/concert";
    for (uri, original, location) in [
        ("/gate/concert", "/cart?x=1&y=2", "?return=/cart%3Fx%3D1%26y%3D2"),
        ("/gate/concert", "/cart?pass=a.b.c", "?return=/cart"),
        ("/gate/concert", "/", ""),
        ("/gate/concert", "//evil.example/", ""),
        ("/gate/concert", "/\\evil.example/", ""),
        ("/gate/concert", "https://evil.example/", ""),
        ("/gate/concert", "", ""),
        ("/gate/concert/shop/cart?x=1", "/ignored", "?return=/shop/cart%3Fx%3D1"),
        ("/gate/concert//evil.example", "/ignored", ""),
    ] {
        for name in ["x-original-uri", "x-forwarded-uri"] {
            let refused = gate.check(uri, &[HTML, (name, original)]).await;
            assert_eq!(refused.status.as_u16(), 302, "{original}");
            assert_eq!(refused.header("location"), format!("{page}{location}"), "{uri} {original}");
            assert_eq!(refused.header("cache-control"), "no-store");
        }
    }
    let posted = [HTML, ("x-original-uri", "/cart"), ("x-original-method", "POST")];
    assert_eq!(gate.check("/gate/concert", &posted).await.header("location"), page);
    let nginx = gate.check("/gate/concert?deny=401", &[HTML, ("x-original-uri", "/cart")]).await;
    let shown = (nginx.status.as_u16(), nginx.header("daegi-location"), nginx.header("location"));
    assert_eq!(shown, (401, &*format!("{page}?return=/cart"), ""));
    gate.harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pass_moves_from_the_address_into_a_cookie() {
    let gate = Gate::start().await;
    let address = format!("/cart?x=1&pass={}", pass(&gate.kim));
    let headers = [HTML, ("x-original-uri", &*address), ("x-forwarded-proto", "https")];
    let moved = gate.check("/gate/concert", &headers).await;
    assert_eq!((moved.status.as_u16(), moved.header("location")), (302, "/cart?x=1"));
    let stored = moved.header("set-cookie").to_owned();
    assert!(stored.starts_with(&format!("{}; Path=/; Max-Age=", cookie(&gate.kim))), "{stored}");
    assert!(stored.ends_with("; HttpOnly; SameSite=Lax; Secure"), "{stored}");
    let plain = gate
        .check(
            "/gate/concert",
            &[HTML, ("x-original-uri", &address), ("x-forwarded-proto", "http")],
        )
        .await;
    assert!(!plain.header("set-cookie").contains("Secure"));

    let nginx = gate.check("/gate/concert?deny=401", &headers).await;
    let shown = (nginx.status.as_u16(), nginx.header("daegi-location"));
    assert_eq!(shown, (401, "/cart?x=1"));
    assert_eq!(nginx.header("set-cookie"), stored);

    // A link of lee must not replace kim, but it is cleaned.
    let (of_lee, of_kim) = (format!("/cart?pass={}", pass(&gate.lee)), cookie(&gate.kim));
    let link = [HTML, ("x-original-uri", &*of_lee), ("cookie", &of_kim)];
    let cleaned = gate.check("/gate/concert", &link).await;
    let shown = (cleaned.status.as_u16(), cleaned.header("location"), cleaned.header("set-cookie"));
    assert_eq!(shown, (302, "/cart", ""));

    // Programs, and requests that a redirect would change, pass with the address as it is.
    let program = gate.check("/gate/concert", &[("x-original-uri", &address)]).await;
    assert_eq!((program.status.as_u16(), program.header("daegi-user")), (200, "kim"));
    let posted = [HTML, ("x-original-uri", &*address), ("x-forwarded-method", "POST")];
    assert_eq!(gate.check("/gate/concert", &posted).await.status.as_u16(), 200);
    // A parameter of the service with the same name stays.
    let own = [HTML, ("x-original-uri", "/cart?pass=season"), ("cookie", &*of_kim)];
    assert_eq!(gate.check("/gate/concert", &own).await.status.as_u16(), 200);
    gate.harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_gate_makes_no_store_call() {
    let gate = Gate::start().await;
    let cookie = cookie(&gate.kim);
    let before = gate.harness.store.total_calls();
    let allowed = gate.check("/gate/concert", &[("cookie", &cookie)]).await;
    assert_eq!(allowed.status.as_u16(), 200);
    gate.check("/gate/concert", &[]).await.assert_refused(401, "PASS_MISSING");
    assert_eq!(gate.harness.store.total_calls(), before);
    gate.harness.end().await;
}

impl TestResponse {
    /// Asserts a problem of the guards.
    #[track_caller]
    fn assert_refused(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.json()["code"], code, "{}", self.text);
        assert_eq!(self.header("location"), "");
    }
}
