//! Lines that challenge new users with a widget, against a fake of the providers' protocol.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{Method, StatusCode, Uri};
use axum::routing::post;
use axum::{Json, Router};
use daegi_domain::{Challenge, ChallengePolicy, Number, Policy, Ticket, UserId};
use daegi_runtime::config::{Rates, WidgetConfig};
use daegi_runtime::{Config, Role};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::harness::{Harness, NOW, TestResponse, id, line, request};

const SECRET: &str = "0x-secret";
const HOST: &str = "wait.example";

/// A server that speaks the protocol of Turnstile and hCaptcha until it is dropped.
struct FakeProvider {
    config: WidgetConfig,
    state: Arc<FakeState>,
    _server: JoinSet<std::io::Result<()>>,
}

#[derive(Default)]
struct FakeState {
    /// Responses that widgets have made: the reply to the first verification of each.
    made: Mutex<HashMap<String, Value>>,
    verified: Mutex<HashSet<String>>,
    forms: Mutex<Vec<HashMap<String, String>>>,
}

impl FakeProvider {
    async fn start() -> Self {
        let state = Arc::<FakeState>::default();
        let router = Router::new().route("/siteverify", post(site_verify));
        let router = router.with_state(Arc::clone(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = config(&format!("http://{}/siteverify", listener.local_addr().unwrap()));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await });
        Self { config, state, _server: server }
    }

    /// Makes a response, as a widget that a user has solved; the provider confirms it once.
    fn solve(&self, response: &str, reply: Value) {
        self.state.made.lock().unwrap().insert(response.to_owned(), reply);
    }

    fn verifications(&self) -> usize {
        self.state.forms.lock().unwrap().len()
    }
}

/// The status is 200 for every verification, as at the providers.
async fn site_verify(State(state): State<Arc<FakeState>>, form: String) -> Json<Value> {
    let uri = Uri::builder().path_and_query(format!("/?{form}")).build().unwrap();
    let Query(form) = Query::<HashMap<String, String>>::try_from_uri(&uri).unwrap();
    state.forms.lock().unwrap().push(form.clone());
    let refused = |code: &str| json!({ "success": false, "error-codes": [code] });
    let response = &form["response"];
    let reply = match state.made.lock().unwrap().get(response) {
        _ if form["secret"] != SECRET => refused("invalid-input-secret"),
        Some(_) if !state.verified.lock().unwrap().insert(response.clone()) => {
            refused("timeout-or-duplicate")
        }
        Some(reply) => reply.clone(),
        None => refused("invalid-input-response"),
    };
    Json(reply)
}

fn config(verify_url: &str) -> WidgetConfig {
    let args = [
        "--widget-site-key=0x-site".to_owned(),
        format!("--widget-secret={SECRET}"),
        format!("--widget-verify-url={verify_url}"),
        format!("--widget-hostnames=other.example, {HOST}"),
    ];
    let parsed = Config::parse(Role::AllInOne, args, []).unwrap();
    parsed.into_config().unwrap().widget.unwrap()
}

fn confirmed() -> Value {
    json!({ "success": true, "hostname": HOST, "challenge_ts": "2026-11-19T08:00:00Z", "error-codes": [] })
}

/// Starts an api whose item `concert` challenges new users with a widget.
async fn api(widget: Option<WidgetConfig>) -> Harness {
    let harness = Harness::with_challenges("plain", |_| (), Rates::default(), widget).await;
    let policy = Policy { challenge: ChallengePolicy::Widget, ..Policy::default() };
    harness.put("concert", 1000, true, Some(policy)).await;
    harness
}

async fn join(harness: &Harness, user: &str, solution: &str) -> TestResponse {
    let headers = [("user-id", user), ("daegi-challenge", solution)];
    harness.call(request(Method::POST, &line("concert"), &headers, "")).await
}

/// Returns the challenge of a refused join.
#[track_caller]
fn challenge(refused: &TestResponse) -> String {
    refused.assert_problem(403, "CHALLENGE_REQUIRED");
    let challenge = &refused.json()["challenge"];
    assert_eq!((&challenge["kind"], &challenge["difficulty"]), (&json!("widget"), &json!(0)));
    challenge["challenge"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_user_joins_with_a_response_that_the_provider_confirms_and_never_twice_with_it() {
    let provider = FakeProvider::start().await;
    let harness = api(Some(provider.config.clone())).await;
    let refused = harness.join("concert", "kim").await;
    let text = challenge(&refused);
    let widget = &refused.json()["challenge"]["widget"];
    let script = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";
    let expected = json!({ "provider": "turnstile", "siteKey": "0x-site", "script": script });
    assert_eq!(*widget, expected);

    let before = harness.store.calls("join");
    provider.solve("response.of:kim", json!({ "cdata": text, "success": true, "hostname": HOST }));
    let solution = format!("{text}:response.of:kim");
    let joined = join(&harness, "kim", &solution).await;
    assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    let form = provider.state.forms.lock().unwrap()[0].clone();
    assert_eq!((&*form["secret"], &*form["sitekey"]), (SECRET, "0x-site"));
    challenge(&join(&harness, "kim", &solution).await);
    assert_eq!((provider.verifications(), harness.store.calls("join")), (2, before + 1));
    harness.end().await;
}

#[tokio::test]
async fn wrong_expired_and_foreign_responses_are_refused_without_a_store_call() {
    let provider = FakeProvider::start().await;
    let harness = api(Some(provider.config.clone())).await;
    let text = challenge(&harness.join("concert", "kim").await);
    let other = challenge(&harness.join("concert", "lee").await);
    let before = harness.store.total_calls();
    let expired = json!({ "success": false, "error-codes": ["timeout-or-duplicate"] });
    let old = json!({ "success": false, "error-codes": ["expired-input-response"] });
    provider.solve("expired", expired);
    provider.solve("expired-at-hcaptcha", old);
    provider.solve("foreign-page", json!({ "success": true, "hostname": "evil.example" }));
    let of_other = json!({ "success": true, "hostname": HOST, "cdata": other });
    provider.solve("other-user", of_other);
    for (asked, response) in
        ["never-made", "expired", "expired-at-hcaptcha", "foreign-page", "other-user"]
            .into_iter()
            .enumerate()
    {
        let refused = join(&harness, "kim", &format!("{text}:{response}")).await;
        challenge(&refused);
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("the response of the widget is not confirmed"), "{detail}");
        assert_eq!(provider.verifications(), asked + 1);
    }
    // What this pod has not signed for the user costs no request to the provider.
    provider.solve("good", confirmed());
    let too_long = format!("{text}:{}", "x".repeat(4097));
    for solution in ["good", ":good", &format!("{other}:good"), &format!("{text}:"), &too_long] {
        challenge(&join(&harness, "kim", solution).await);
    }
    harness.clock.advance(Duration::from_millis(Challenge::LIFETIME_MS + 1));
    challenge(&join(&harness, "kim", &format!("{text}:good")).await);
    assert_eq!((provider.verifications(), harness.store.total_calls()), (5, before));
    harness.end().await;
}

#[tokio::test]
async fn a_solved_widget_in_the_body_joins_too() {
    let provider = FakeProvider::start().await;
    let harness = api(Some(provider.config.clone())).await;
    let text = challenge(&harness.join("concert", "kim").await);
    let response = "x".repeat(3000);
    provider.solve(&response, confirmed());
    let body = json!({ "userId": "kim", "challenge": format!("{text}:{response}") });
    let joined = harness.post(&line("concert"), &body.to_string()).await;
    assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    harness.end().await;
}

/// Time is paused: the provider that hangs is given up without waiting.
#[tokio::test(start_paused = true)]
async fn while_the_provider_is_down_or_hangs_new_users_get_503_and_users_with_a_ticket_are_served()
{
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hanging_url = format!("http://{}/siteverify", hanging.local_addr().unwrap());
    for url in ["http://127.0.0.1:1/siteverify", &hanging_url] {
        let harness = api(Some(config(url))).await;
        let lee = Ticket::new(id("concert"), UserId::parse("lee").unwrap(), Number(NOW << 6));
        let bearer = format!("Bearer {}", harness.keys.token(&lee));
        let solution = format!("{}:response", challenge(&harness.join("concert", "kim").await));
        let refused = join(&harness, "kim", &solution).await;
        refused.assert_problem(503, "UNAVAILABLE");
        assert!(!refused.header("retry-after").is_empty(), "{url}");
        let headers = [("user-id", "lee"), ("authorization", &*bearer)];
        let joined = harness.call(request(Method::POST, &line("concert"), &headers, "")).await;
        assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
        harness.end().await;
    }
}

#[tokio::test]
async fn a_wrong_secret_is_the_fault_of_the_operator_and_not_of_the_user() {
    let provider = FakeProvider::start().await;
    let args = [
        "--widget-site-key=0x-site".to_owned(),
        "--widget-secret=another".to_owned(),
        format!("--widget-verify-url={}", provider.config.verify_url),
    ];
    let parsed = Config::parse(Role::AllInOne, args, []).unwrap().into_config();
    let harness = api(parsed.unwrap().widget).await;
    let text = challenge(&harness.join("concert", "kim").await);
    let refused = join(&harness, "kim", &format!("{text}:response")).await;
    refused.assert_problem(503, "UNAVAILABLE");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_widget_takes_no_new_users_at_such_a_line() {
    let harness = api(None).await;
    harness.join("concert", "kim").await.assert_problem(503, "UNAVAILABLE");
    assert_eq!(harness.join("plain", "kim").await.status, StatusCode::CREATED);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_page_of_a_line_with_a_widget_permits_the_origin_of_the_provider() {
    let harness = api(Some(config("http://127.0.0.1:1/siteverify"))).await;
    let page = harness.get("/wait/concert").await;
    let policy = page.header("content-security-policy");
    let origin = "https://challenges.cloudflare.com";
    for directive in ["script-src", "style-src", "connect-src"] {
        assert!(policy.contains(&format!("{directive} 'self' {origin};")), "{policy}");
    }
    assert!(policy.contains(&format!("frame-src {origin};")), "{policy}");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    let address = page.text.split('"').find(|text| text.starts_with("/widget.js?v=")).unwrap();
    let script = harness.get(address).await;
    assert!(script.header("content-type").starts_with("text/javascript"));
    assert!(script.header("cache-control").contains("immutable"));
    let plain = harness.get("/wait/plain").await;
    let policy = plain.header("content-security-policy");
    assert!(!policy.contains("http") && !policy.contains("frame-src"), "{policy}");
    assert!(!plain.text.contains("widget"), "{}", plain.text);
    harness.end().await;
}
