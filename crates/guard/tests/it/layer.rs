//! Routes behind the layer.

use axum::body::Body;
use axum::extract::Path;
use axum::http::{Request, Response, StatusCode, header};
use axum::routing::{get, post};
use axum::{Router, http::request};
use daegi_domain::{Number, PassKeys, Ticket, TicketKeys, UserId};
use daegi_guard::{Clock, Entry, Error, Guard, GuardConfig, ItemId};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::stub_daegi::StubDaegi;

struct Shop {
    daegi: StubDaegi,
    router: Router,
    pass: String,
    token: String,
}

impl Shop {
    async fn open() -> Self {
        let daegi = StubDaegi::start().await;
        let (keys, tickets) = (PassKeys::generate(), TicketKeys::generate());
        daegi.state().keys = Some(serde_json::to_value(keys.jwks()).unwrap());
        let (item, user) = (concert(), UserId::parse("kim").unwrap());
        let ticket = Ticket::new(item, user, Number(7));
        let pass = keys.pass((&ticket, None), tickets.uuid(&ticket), 1_000_000, 1_600_000);
        let config = GuardConfig {
            internal_url: Some(daegi.url.clone()),
            browser_url: "https://wait.example".to_owned(),
            clock: Clock::new(|| 1_000_000),
            ..GuardConfig::new(&daegi.url)
        };
        let router = routes(&Guard::new(config).unwrap());
        Self { daegi, router, pass, token: tickets.token(&ticket) }
    }

    async fn send(&self, request: request::Builder) -> Response<Body> {
        self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }
}

fn concert() -> ItemId {
    ItemId::parse("concert").unwrap()
}

fn routes(guard: &Guard) -> Router {
    let hello = async |entry: Entry| format!("hello {}", entry.user);
    let order = async |Path(how): Path<String>, _: Entry| match how.as_str() {
        "well" => StatusCode::CREATED,
        _ => StatusCode::PAYMENT_REQUIRED,
    };
    let by_path = guard.layer_with(|parts| {
        ItemId::parse(parts.uri.path().strip_prefix("/items/").unwrap_or_default()).ok()
    });
    let orders = guard.layer(concert()).complete_on_success();
    Router::new()
        .route("/checkout", get(hello).layer(guard.layer(concert())))
        .route("/items/{item}", get(hello).layer(by_path))
        .route("/orders/{how}", post(order).layer(orders))
        .route("/bare", get(hello))
}

async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn browsers_without_a_pass_are_redirected_and_other_clients_get_a_problem() {
    let shop = Shop::open().await;
    let browser = shop.send(Request::get("/checkout").header("accept", "text/html,*/*")).await;
    assert_eq!(browser.status(), StatusCode::SEE_OTHER);
    assert_eq!(browser.headers()[header::LOCATION], "https://wait.example/wait/concert");
    let client = shop.send(Request::get("/checkout").header("accept", "application/json")).await;
    assert_eq!(client.status(), StatusCode::UNAUTHORIZED);
    let problem: Value = serde_json::from_str(&text(client).await).unwrap();
    assert_eq!(problem["code"], "PASS_MISSING");
    assert_eq!(problem["waitingPage"], "https://wait.example/wait/concert");
    let stranger = shop.send(Request::get("/checkout?pass=a.b.c")).await;
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    assert!(!stranger.headers().contains_key(header::SET_COOKIE));
}

#[tokio::test]
async fn a_pass_from_the_url_is_stored_in_a_cookie() {
    let shop = Shop::open().await;
    let first = shop.send(Request::get(format!("/checkout?pass={}", shop.pass))).await;
    let cookie = first.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    let rest = "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
    assert_eq!(cookie, format!("daegi-pass-concert={}{rest}", shop.pass));
    assert_eq!(text(first).await, "hello kim");
    let kept = cookie.split(';').next().unwrap();
    let second = shop.send(Request::get("/checkout").header("cookie", kept)).await;
    assert!(!second.headers().contains_key(header::SET_COOKIE));
    assert_eq!(text(second).await, "hello kim");
}

#[tokio::test]
async fn the_item_may_be_taken_from_the_request() {
    let shop = Shop::open().await;
    let with_pass = |path| Request::get(path).header("daegi-pass", &shop.pass);
    assert_eq!(shop.send(with_pass("/items/concert")).await.status(), StatusCode::OK);
    assert_eq!(shop.send(with_pass("/items/drop")).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(shop.send(with_pass("/items/a$b")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_a_successful_response_completes_the_entry() {
    let shop = Shop::open().await;
    let order = |how| Request::post(format!("/orders/{how}")).header("daegi-pass", &shop.pass);
    assert_eq!(shop.send(order("badly")).await.status(), StatusCode::PAYMENT_REQUIRED);
    assert!(shop.daegi.state().completed.is_empty());
    assert_eq!(shop.send(order("well")).await.status(), StatusCode::CREATED);
    assert_eq!(shop.daegi.state().completed, std::slice::from_ref(&shop.token));
}

#[tokio::test]
async fn an_entry_needs_a_guard_and_an_online_check_an_internal_url() {
    let shop = Shop::open().await;
    let bare = shop.send(Request::get("/bare").header("daegi-pass", &shop.pass)).await;
    assert_eq!(bare.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(Guard::new(GuardConfig { online: true, ..GuardConfig::new("http://x") }).is_err());
}

#[tokio::test]
async fn an_https_url_is_rejected_without_a_custom_client() {
    let config = |room: &str, internal: &str| GuardConfig {
        browser_url: "https://wait.example/".to_owned(),
        internal_url: Some(internal.to_owned()),
        ..GuardConfig::new(room)
    };
    let far = config("HTTPS://wait.example", "http://daegi-api-internal:8081");
    assert!(
        matches!(Guard::new(far.clone()), Err(Error::TlsUnsupported(address)) if address == far.public_url)
    );
    let odd = config("http://daegi-api", "https://daegi-api-internal");
    assert!(matches!(Guard::new(odd), Err(Error::TlsUnsupported(_))));
    Guard::with_client(far, daegi_guard::reqwest::Client::new()).unwrap();
    let near = Guard::new(config("http://daegi-api", "http://daegi-api-internal:8081")).unwrap();
    assert_eq!(near.waiting_page(&concert()), "https://wait.example/wait/concert");
}
