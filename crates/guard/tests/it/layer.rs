//! Routes behind the layer.

use axum::body::Body;
use axum::extract::Path;
use axum::http::{Request, Response, StatusCode, header};
use axum::routing::{get, post};
use axum::{Router, http::request};
use daegi_domain::{Number, PassKeys, Ticket, TicketKeys, UserId};
use daegi_guard::{Clock, Entry, Error, Guard, ItemId, Setup};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::daegi::Daegi;

struct Shop {
    daegi: Daegi,
    router: Router,
    pass: String,
    token: String,
}

impl Shop {
    async fn open() -> Self {
        let daegi = Daegi::start().await;
        let (keys, tickets) = (PassKeys::generate(), TicketKeys::generate());
        daegi.word().keys = Some(serde_json::to_value(keys.jwks()).unwrap());
        let (item, user) = (concert(), UserId::parse("kim").unwrap());
        let ticket = Ticket { item, user, number: Number(7) };
        let pass = keys.pass(&ticket, tickets.uuid(&ticket), 1_000_000, 1_600_000);
        let setup = Setup {
            internal: Some(daegi.url.clone()),
            pages: "https://wait.example".to_owned(),
            clock: Clock::new(|| 1_000_000),
            ..Setup::of(&daegi.url)
        };
        let router = routes(&Guard::new(setup).unwrap());
        Self { daegi, router, pass, token: tickets.token(&ticket) }
    }

    async fn ask(&self, request: request::Builder) -> Response<Body> {
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
    let by_path = guard.protect_by(|parts| {
        ItemId::parse(parts.uri.path().strip_prefix("/items/").unwrap_or_default()).ok()
    });
    let orders = guard.protect(concert()).completing();
    Router::new()
        .route("/checkout", get(hello).layer(guard.protect(concert())))
        .route("/items/{item}", get(hello).layer(by_path))
        .route("/orders/{how}", post(order).layer(orders))
        .route("/bare", get(hello))
}

async fn text(answer: Response<Body>) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn people_without_a_pass_are_sent_to_the_waiting_page_and_programs_are_told() {
    let shop = Shop::open().await;
    let person = shop.ask(Request::get("/checkout").header("accept", "text/html,*/*")).await;
    assert_eq!(person.status(), StatusCode::SEE_OTHER);
    assert_eq!(person.headers()[header::LOCATION], "https://wait.example/wait/concert");
    let program = shop.ask(Request::get("/checkout").header("accept", "application/json")).await;
    assert_eq!(program.status(), StatusCode::UNAUTHORIZED);
    let problem: Value = serde_json::from_str(&text(program).await).unwrap();
    assert_eq!(problem["code"], "PASS_MISSING");
    assert_eq!(problem["waitingPage"], "https://wait.example/wait/concert");
    let stranger = shop.ask(Request::get("/checkout?pass=a.b.c")).await;
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    assert!(!stranger.headers().contains_key(header::SET_COOKIE));
}

#[tokio::test]
async fn a_pass_that_comes_with_the_address_is_kept_in_a_cookie() {
    let shop = Shop::open().await;
    let first = shop.ask(Request::get(format!("/checkout?pass={}", shop.pass))).await;
    let cookie = first.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    let rest = "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
    assert_eq!(cookie, format!("daegi-pass-concert={}{rest}", shop.pass));
    assert_eq!(text(first).await, "hello kim");
    let kept = cookie.split(';').next().unwrap();
    let second = shop.ask(Request::get("/checkout").header("cookie", kept)).await;
    assert!(!second.headers().contains_key(header::SET_COOKIE));
    assert_eq!(text(second).await, "hello kim");
}

#[tokio::test]
async fn the_item_may_be_part_of_the_request() {
    let shop = Shop::open().await;
    let with_pass = |path| Request::get(path).header("daegi-pass", &shop.pass);
    assert_eq!(shop.ask(with_pass("/items/concert")).await.status(), StatusCode::OK);
    assert_eq!(shop.ask(with_pass("/items/drop")).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(shop.ask(with_pass("/items/a$b")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_what_went_well_completes_the_entry() {
    let shop = Shop::open().await;
    let order = |how| Request::post(format!("/orders/{how}")).header("daegi-pass", &shop.pass);
    assert_eq!(shop.ask(order("badly")).await.status(), StatusCode::PAYMENT_REQUIRED);
    assert!(shop.daegi.word().completed.is_empty());
    assert_eq!(shop.ask(order("well")).await.status(), StatusCode::CREATED);
    assert_eq!(shop.daegi.word().completed, std::slice::from_ref(&shop.token));
}

#[tokio::test]
async fn an_entry_needs_a_guard_and_asking_online_an_address() {
    let shop = Shop::open().await;
    let bare = shop.ask(Request::get("/bare").header("daegi-pass", &shop.pass)).await;
    assert_eq!(bare.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(Guard::new(Setup { online: true, ..Setup::of("http://x") }).is_err());
}

#[tokio::test]
async fn an_https_address_is_refused_at_once_unless_the_client_is_ones_own() {
    let setup = |room: &str, internal: &str| Setup {
        pages: "https://wait.example/".to_owned(),
        internal: Some(internal.to_owned()),
        ..Setup::of(room)
    };
    let far = setup("HTTPS://wait.example", "http://daegi-api-internal:8081");
    assert!(matches!(Guard::new(far.clone()), Err(Error::NoTls(address)) if address == far.room));
    let odd = setup("http://daegi-api", "https://daegi-api-internal");
    assert!(matches!(Guard::new(odd), Err(Error::NoTls(_))));
    Guard::with_client(far, daegi_guard::reqwest::Client::new()).unwrap();
    let near = Guard::new(setup("http://daegi-api", "http://daegi-api-internal:8081")).unwrap();
    assert_eq!(near.waiting_page(&concert()), "https://wait.example/wait/concert");
}
