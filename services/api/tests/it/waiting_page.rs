//! The waiting page as the server writes it.

use axum::http::Method;
use daegi_domain::{Branding, Colour, LaneName, LanePolicy, Policy};

use crate::harness::{Harness, TestResponse, request};
use crate::spy_store::StoreMode;

impl Harness {
    async fn page(&self, item: &str, headers: &[(&str, &str)]) -> TestResponse {
        self.call(request(Method::GET, &format!("/wait/{item}"), headers, "")).await
    }

    /// Joins as a browser without scripts does, and returns the cookie.
    async fn press_join(&self, item: &str, headers: &[(&str, &str)]) -> String {
        let pressed = self.call(request(Method::POST, &format!("/wait/{item}"), headers, "")).await;
        assert_eq!((pressed.status.as_u16(), pressed.header("location")), (303, "/wait/concert"));
        pressed.header("set-cookie").split(';').next().unwrap().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn the_page_loads_only_its_own_assets() {
    let harness = Harness::with_item("concert").await;
    let page = harness.page("concert", &[]).await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    for foreign in ["src=\"http", "href=\"http", "href=\"//", " style=\"", " onclick", "<style"] {
        assert!(!page.text.contains(foreign), "{foreign}");
    }
    let mut size = page.text.len();
    for (part, kind) in [("wait.js", "text/javascript"), ("wait.css", "text/css")] {
        let address = page.text.split('"').find(|text| text.contains(part)).unwrap();
        let named = harness.get(address).await;
        assert!(named.header("content-type").starts_with(kind));
        assert!(named.header("cache-control").contains("immutable"));
        let other = harness.get(&format!("/{part}?v=another-build")).await;
        assert_eq!(other.header("cache-control"), "no-store");
        size += named.text.len();
    }
    assert!(size < 64_000, "{size} bytes");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_page_is_in_the_language_of_the_user() {
    let harness = Harness::with_item("concert").await;
    let korean = harness.page("concert", &[("accept-language", "ko-KR,ko;q=0.9")]).await;
    assert!(korean.text.contains("<html lang=\"ko\"") && korean.text.contains("줄서기"));
    let english = harness.page("concert", &[("accept-language", "fr, en;q=0.5")]).await;
    assert!(english.text.contains("<html lang=\"en\"") && english.text.contains("Join the line"));
    assert!(english.header("vary").contains("Accept-Language"));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn loading_the_page_does_not_join() {
    let harness = Harness::with_item("concert").await;
    for _ in 0..3 {
        assert_eq!(harness.page("concert", &[]).await.status, 200);
    }
    assert_eq!(harness.get("/api/v1/item/concert/waiting-queue").await.json()["waitingCount"], 0);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_item_and_an_outage_have_pages() {
    let harness = Harness::with_item("concert").await;
    for item in ["nothing", "no%20id", "~daegi.warm-up"] {
        let page = harness.page(item, &[]).await;
        assert_eq!(page.status, 404, "{item}");
        assert!(page.text.contains("Nothing to wait for"));
    }
    harness.put_item("other", 5, true).await;
    harness.store.set_mode(StoreMode::Refusing);
    let page = harness.page("other", &[]).await;
    assert_eq!((page.status.as_u16(), page.header("retry-after")), (503, "3"));
    assert!(page.text.contains("We will be right back") && page.text.contains("wait.js"));
    harness.store.set_mode(StoreMode::Up);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_scripts_a_cookie_stores_the_token_and_the_page_reloads() {
    let harness = Harness::with_item("concert").await;
    harness.token("concert", "kim").await;
    let pressed = harness.call(request(Method::POST, "/wait/concert", &[], "")).await;
    let set = pressed.header("set-cookie");
    for part in ["; Path=/wait/concert", "; HttpOnly", "; SameSite=Lax", "; Max-Age="] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "plain http keeps its cookies");
    let cookie = set.split(';').next().unwrap();
    let page = harness.page("concert", &[("cookie", &format!("theme=dark; {cookie}"))]).await;
    assert!(page.text.contains("<strong>2</strong>"), "{}", page.text);
    assert!(page.text.contains("<noscript><meta http-equiv=\"refresh\" content=\""));
    let again = harness.press_join("concert", &[("cookie", cookie)]).await;
    assert_eq!(again, cookie, "the same person keeps the same place");
    let https = [("x-forwarded-proto", "https")];
    let pressed = harness.call(request(Method::POST, "/wait/concert", &https, "")).await;
    assert!(pressed.header("set-cookie").ends_with("; Secure"));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_scripts_the_redirect_goes_to_the_entry_url_only() {
    let harness = Harness::with_item("concert").await;
    let entry_url = Some("https://shop.example/in?pass={pass}&x=1".to_owned());
    harness.put("concert", 5, true, Some(Policy { entry_url, ..Policy::default() })).await;
    let cookie = harness.press_join("concert", &[]).await;
    harness.admit("concert", 1).await;
    let token = cookie.split_once('=').unwrap().1;
    let ticket = harness.until_status("concert", token, "ENTERABLE").await;
    let address = ticket["entryUrl"].as_str().unwrap().replace('&', "&#38;");
    let uri = "/wait/concert?entryUrl=https://evil.example&next=//evil.example";
    let page = harness.call(request(Method::GET, uri, &[("cookie", &cookie)], "")).await;
    assert!(page.text.contains(&format!("content=\"3;url={address}\"")), "{}", page.text);
    assert!(page.text.contains(&format!("href=\"{address}\"")));
    assert!(!page.text.contains("evil"));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_form_of_another_site_is_refused() {
    let harness = Harness::with_item("concert").await;
    let foreign = [("sec-fetch-site", "cross-site")];
    let refused = harness.call(request(Method::POST, "/wait/concert", &foreign, "")).await;
    refused.assert_problem(400, "INVALID_REQUEST");
    harness.press_join("concert", &[("sec-fetch-site", "same-origin")]).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_cookie_is_ignored() {
    let harness = Harness::with_item("concert").await;
    harness.put_item("other", 5, true).await;
    let other = harness.token("other", "kim").await;
    for token in ["forged", "", &other] {
        let cookie = format!("daegi-ticket={token}");
        let page = harness.page("concert", &[("cookie", &cookie)]).await;
        assert_eq!(page.status, 200);
        assert!(page.text.contains("Join the line"), "{token:?}");
    }
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_that_does_not_move_shows_the_reason() {
    let harness = Harness::with_item("concert").await;
    let cookie = harness.press_join("concert", &[]).await;
    harness.put_item("concert", 0, true).await;
    let sold_out = async || {
        let page = harness.page("concert", &[("cookie", &cookie)]).await;
        (page.text.contains("<h1>Sold out</h1>") && page.text.contains("<strong>1</strong>"))
            .then_some(())
    };
    daegi_testkit::eventually(crate::harness::TEST_TIMEOUT, "sold out", sold_out).await;
    let outside = harness.page("concert", &[]).await;
    assert!(outside.text.contains("<h1>Sold out</h1>"));
    harness.put("concert", 0, true, with_message("More on Friday.")).await;
    let with_message = async || {
        let page = harness.page("concert", &[("cookie", &cookie)]).await;
        page.text.contains("<p class=\"message\">More on Friday.</p></div>").then_some(())
    };
    daegi_testkit::eventually(crate::harness::TEST_TIMEOUT, "the message", with_message).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_item_can_have_branding() {
    let harness = Harness::with_item("concert").await;
    let page = Branding {
        title: Some("<Friday> \"night\"".into()),
        message: Some("See you there.".into()),
        accent: Some(Colour::parse("#0a3d91").unwrap()),
        logo: Some("data:image/png;base64,AAAA".into()),
    };
    harness.put("concert", 5, true, Some(Policy { page, ..Policy::default() })).await;
    let shown = async || {
        let page = harness.page("concert", &[]).await.text;
        page.contains("&#60;Friday&#62; &#34;night&#34;").then_some(page)
    };
    let page = daegi_testkit::eventually(crate::harness::TEST_TIMEOUT, "the look", shown).await;
    assert!(page.contains("See you there.") && page.contains("src=\"data:image/png;base64,AAAA\""));
    assert!(page.contains("href=\"/wait/concert/look.css\"") && !page.contains("<Friday>"));
    let style = harness.get("/wait/concert/look.css").await;
    assert!(style.text.starts_with(":root{--accent:#0a3d91;"), "{}", style.text);
    harness.end().await;
}

fn with_message(message: &str) -> Option<Policy> {
    let page = Branding { message: Some(message.into()), ..Branding::default() };
    Some(Policy { page, ..Policy::default() })
}

#[tokio::test(start_paused = true)]
async fn a_changed_message_reaches_open_streams_within_two_seconds() {
    let harness = Harness::with_item("concert").await;
    let kim = harness.token("concert", "kim").await;
    let texts = harness.get("/wait/concert/page.json").await.json();
    assert!(texts["message"].is_null(), "{texts}");
    let revision = texts["revision"].as_str().unwrap();
    let html = harness.page("concert", &[]).await.text;
    assert!(html.contains(&format!("data-revision=\"{revision}\"")));
    let mut page = harness.open_stream_with_page("concert", &kim, revision).await;
    let mut api = harness.open_stream("concert", &kim, None).await;
    assert_eq!(page.ticket().await["position"], 1, "the texts are the ones that are shown");
    api.ticket().await;
    let began = tokio::time::Instant::now();
    harness.put("concert", 5, true, with_message("Doors open at 8.")).await;
    let changed = page.next_event().await.unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!((changed.name.as_deref(), changed.id), (Some("page"), None));
    assert_eq!(changed.data.unwrap()["message"], "Doors open at 8.");
    harness.put("concert", 0, true, with_message("Doors open at 8.")).await;
    assert_eq!(page.ticket().await["lineState"], "SOLD_OUT", "and then tickets as before");
    assert_eq!(api.ticket().await["lineState"], "SOLD_OUT", "other clients get tickets only");
    drop((page, api));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_missed_a_change_receives_it_when_it_opens_its_stream() {
    let harness = Harness::with_item("concert").await;
    harness.put("concert", 5, true, with_message("Doors open at 8.")).await;
    let kim = harness.token("concert", "kim").await;
    let mut page = harness.open_stream_with_page("concert", &kim, "older").await;
    page.ticket().await;
    let changed = page.next_event().await.unwrap();
    assert_eq!(changed.name.as_deref(), Some("page"));
    assert_eq!(changed.data.unwrap()["message"], "Doors open at 8.");
    drop(page);
    let calls = harness.store.calls("snapshot");
    for _ in 0..100 {
        assert_eq!(
            harness.get("/wait/concert/page.json").await.header("cache-control"),
            "public, max-age=1"
        );
    }
    assert!(harness.store.calls("snapshot") - calls <= 1, "texts cost the store nothing");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_join_without_scripts_that_is_refused_says_why() {
    let harness = Harness::with_item("concert").await;
    let full = Policy { max_waiting: Some(1), ..Policy::default() };
    harness.put("concert", 5, true, Some(full)).await;
    harness.token("concert", "kim").await;
    let pressed = harness.call(request(Method::POST, "/wait/concert", &[], "")).await;
    let home = pressed.header("location").to_owned();
    assert_eq!((pressed.status.as_u16(), home.as_str()), (303, "/wait/concert?refused=LINE_FULL"));
    let page = harness.get(&home).await.text;
    assert!(page.contains("<h1>The line is full</h1>") && page.contains("Join the line"), "{page}");
    let other = harness.get("/wait/concert?refused=A_CODE_OF_TOMORROW").await.text;
    assert!(other.contains("<h1>You could not join the line</h1>"), "{other}");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_scripts_a_line_with_lanes_has_a_field_for_an_invitation_code() {
    let harness = Harness::with_item("plain").await;
    let plain = harness.page("plain", &[]).await.text;
    assert!(plain.contains("data-lanes=\"false\"") && !plain.contains("still-code"), "{plain}");
    let members =
        LanePolicy { name: LaneName::parse("members").unwrap(), weight: 30, first: false };
    let policy = Policy { lanes: vec![members], ..Policy::default() };
    harness.put("concert", 5, true, Some(policy)).await;
    let page = harness.page("concert", &[]).await.text;
    assert!(page.contains("<input id=\"still-code\" name=\"code\""), "{page}");
    assert!(page.contains("data-lanes=\"true\"") && page.contains("if you have one"), "{page}");
    assert!(!page.contains("still-refused"), "{page}");
    // A user who waits follows a link, because the page with the position reloads.
    let cookie = harness.press_join("concert", &[]).await;
    let page = harness.page("concert", &[("cookie", &cookie)]).await.text;
    assert!(
        page.contains("<a href=\"?code\">") && page.contains("http-equiv=\"refresh\""),
        "{page}"
    );
    assert!(!page.contains("still-code"), "{page}");
    for (query, is_refused) in [("code", false), ("refused=INVALID_CODE", true)] {
        let uri = format!("/wait/concert?{query}");
        let page = harness.call(request(Method::GET, &uri, &[("cookie", &cookie)], "")).await.text;
        assert!(page.contains("still-code") && page.contains("Change lines"), "{page}");
        assert!(!page.contains("http-equiv=\"refresh\""), "{page}");
        assert_eq!(page.contains("still-refused"), is_refused, "{page}");
        assert!(page.contains("<strong>1</strong>"), "{page}");
    }
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_scripts_a_refused_code_is_explained_before_the_user_joins() {
    let harness = Harness::with_item("concert").await;
    let page = harness.get("/wait/concert?refused=INVALID_CODE").await.text;
    assert!(page.contains("still-refused") && page.contains("Join the line"), "{page}");
    assert!(!page.contains("You could not join the line</h1>"), "{page}");
    harness.end().await;
}
