//! The waiting page as the server writes it.

use axum::http::Method;
use daegi_domain::{Colour, Look, Policy};

use crate::harness::{Answer, World, request};
use crate::probe::Mood;

impl World {
    async fn page(&self, item: &str, headers: &[(&str, &str)]) -> Answer {
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
async fn the_page_brings_everything_itself_and_trusts_nothing_else() {
    let world = World::with_item("concert").await;
    let page = world.page("concert", &[]).await;
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
        let named = world.get(address).await;
        assert!(named.header("content-type").starts_with(kind));
        assert!(named.header("cache-control").contains("immutable"));
        let other = world.get(&format!("/{part}?v=another-build")).await;
        assert_eq!(other.header("cache-control"), "no-store");
        size += named.text.len();
    }
    assert!(size < 50 * 1024, "{size} bytes");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_page_speaks_the_language_of_the_person() {
    let world = World::with_item("concert").await;
    let korean = world.page("concert", &[("accept-language", "ko-KR,ko;q=0.9")]).await;
    assert!(korean.text.contains("<html lang=\"ko\"") && korean.text.contains("줄서기"));
    let english = world.page("concert", &[("accept-language", "fr, en;q=0.5")]).await;
    assert!(english.text.contains("<html lang=\"en\"") && english.text.contains("Join the line"));
    assert!(english.header("vary").contains("Accept-Language"));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn looking_at_the_page_takes_no_place() {
    let world = World::with_item("concert").await;
    for _ in 0..3 {
        assert_eq!(world.page("concert", &[]).await.status, 200);
    }
    assert_eq!(world.get("/api/v1/item/concert/waiting-queue").await.json()["waitingCount"], 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_and_what_cannot_be_known_are_pages_too() {
    let world = World::with_item("concert").await;
    for item in ["nothing", "no%20id", "~daegi.warm-up"] {
        let page = world.page(item, &[]).await;
        assert_eq!(page.status, 404, "{item}");
        assert!(page.text.contains("Nothing to wait for"));
    }
    world.put_item("other", 5, true).await;
    world.store.set_mood(Mood::Refusing);
    let page = world.page("other", &[]).await;
    assert_eq!((page.status.as_u16(), page.header("retry-after")), (503, "3"));
    assert!(page.text.contains("We will be right back") && page.text.contains("wait.js"));
    world.store.set_mood(Mood::Up);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_scripts_a_cookie_holds_the_place_and_the_page_refreshes() {
    let world = World::with_item("concert").await;
    world.token("concert", "kim").await;
    let pressed = world.call(request(Method::POST, "/wait/concert", &[], "")).await;
    let set = pressed.header("set-cookie");
    for part in ["; Path=/wait/concert", "; HttpOnly", "; SameSite=Lax", "; Max-Age="] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "plain http keeps its cookies");
    let cookie = set.split(';').next().unwrap();
    let page = world.page("concert", &[("cookie", &format!("theme=dark; {cookie}"))]).await;
    assert!(page.text.contains("<strong>2</strong>"), "{}", page.text);
    assert!(page.text.contains("<noscript><meta http-equiv=\"refresh\" content=\""));
    let again = world.press_join("concert", &[("cookie", cookie)]).await;
    assert_eq!(again, cookie, "the same person keeps the same place");
    let https = [("x-forwarded-proto", "https")];
    let pressed = world.call(request(Method::POST, "/wait/concert", &https, "")).await;
    assert!(pressed.header("set-cookie").ends_with("; Secure"));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_scripts_the_turn_leads_where_the_policy_says_and_nowhere_else() {
    let world = World::with_item("concert").await;
    let entry_url = Some("https://shop.example/in?pass={pass}&x=1".to_owned());
    world.put("concert", 5, true, Some(Policy { entry_url, ..Policy::default() })).await;
    let cookie = world.press_join("concert", &[]).await;
    world.admit("concert", 1).await;
    let token = cookie.split_once('=').unwrap().1;
    let ticket = world.until_status("concert", token, "ENTERABLE").await;
    let address = ticket["entryUrl"].as_str().unwrap().replace('&', "&amp;");
    let uri = "/wait/concert?entryUrl=https://evil.example&next=//evil.example";
    let page = world.call(request(Method::GET, uri, &[("cookie", &cookie)], "")).await;
    assert!(page.text.contains(&format!("content=\"3;url={address}\"")), "{}", page.text);
    assert!(page.text.contains(&format!("href=\"{address}\"")));
    assert!(!page.text.contains("evil"));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_form_of_another_site_changes_nothing() {
    let world = World::with_item("concert").await;
    let foreign = [("sec-fetch-site", "cross-site")];
    let refused = world.call(request(Method::POST, "/wait/concert", &foreign, "")).await;
    refused.is_problem(400, "INVALID_REQUEST");
    world.press_join("concert", &[("sec-fetch-site", "same-origin")]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cookie_that_is_not_ours_is_no_ticket() {
    let world = World::with_item("concert").await;
    world.put_item("other", 5, true).await;
    let other = world.token("other", "kim").await;
    for token in ["forged", "", &other] {
        let cookie = format!("daegi-ticket={token}");
        let page = world.page("concert", &[("cookie", &cookie)]).await;
        assert_eq!(page.status, 200);
        assert!(page.text.contains("Join the line"), "{token:?}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_that_stands_still_says_why() {
    let world = World::with_item("concert").await;
    let cookie = world.press_join("concert", &[]).await;
    world.put_item("concert", 0, true).await;
    let sold_out = async || {
        let page = world.page("concert", &[("cookie", &cookie)]).await;
        (page.text.contains("<h1>Sold out</h1>") && page.text.contains("<strong>1</strong>"))
            .then_some(())
    };
    daegi_testkit::eventually(crate::harness::SOON, "sold out", sold_out).await;
    let outside = world.page("concert", &[]).await;
    assert!(outside.text.contains("<h1>Sold out</h1>"));
    world.put("concert", 0, true, with_message("More on Friday.")).await;
    let with_message = async || {
        let page = world.page("concert", &[("cookie", &cookie)]).await;
        page.text.contains("<p class=\"message\">More on Friday.</p></div>").then_some(())
    };
    daegi_testkit::eventually(crate::harness::SOON, "the message", with_message).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_item_may_look_its_own_way() {
    let world = World::with_item("concert").await;
    let page = Look {
        title: Some("<Friday> \"night\"".into()),
        message: Some("See you there.".into()),
        accent: Some(Colour::parse("#0a3d91").unwrap()),
        logo: Some("data:image/png;base64,AAAA".into()),
    };
    world.put("concert", 5, true, Some(Policy { page, ..Policy::default() })).await;
    let shown = async || {
        let page = world.page("concert", &[]).await.text;
        page.contains("&lt;Friday&gt; &quot;night&quot;").then_some(page)
    };
    let page = daegi_testkit::eventually(crate::harness::SOON, "the look", shown).await;
    assert!(page.contains("See you there.") && page.contains("src=\"data:image/png;base64,AAAA\""));
    assert!(page.contains("href=\"/wait/concert/look.css\"") && !page.contains("<Friday>"));
    let style = world.get("/wait/concert/look.css").await;
    assert!(style.text.starts_with(":root{--accent:#0a3d91;"), "{}", style.text);
    world.end().await;
}

fn with_message(message: &str) -> Option<Policy> {
    let page = Look { message: Some(message.into()), ..Look::default() };
    Some(Policy { page, ..Policy::default() })
}

#[tokio::test(start_paused = true)]
async fn a_changed_message_reaches_open_streams_within_two_seconds() {
    let world = World::with_item("concert").await;
    let kim = world.token("concert", "kim").await;
    let texts = world.get("/wait/concert/page.json").await.json();
    assert!(texts["message"].is_null(), "{texts}");
    let revision = texts["revision"].as_str().unwrap();
    let html = world.page("concert", &[]).await.text;
    assert!(html.contains(&format!("data-revision=\"{revision}\"")));
    let mut page = world.listen_with_page("concert", &kim, revision).await;
    let mut api = world.listen("concert", &kim, None).await;
    assert_eq!(page.ticket().await["position"], 1, "the texts are the ones that are shown");
    api.ticket().await;
    let began = tokio::time::Instant::now();
    world.put("concert", 5, true, with_message("Doors open at 8.")).await;
    let changed = page.said().await.unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!((changed.name.as_deref(), changed.id), (Some("page"), None));
    assert_eq!(changed.data.unwrap()["message"], "Doors open at 8.");
    world.put("concert", 0, true, with_message("Doors open at 8.")).await;
    assert_eq!(page.ticket().await["lineState"], "SOLD_OUT", "and then tickets as before");
    assert_eq!(api.ticket().await["lineState"], "SOLD_OUT", "other clients get tickets only");
    drop((page, api));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_missed_a_change_gets_it_when_it_opens_its_stream() {
    let world = World::with_item("concert").await;
    world.put("concert", 5, true, with_message("Doors open at 8.")).await;
    let kim = world.token("concert", "kim").await;
    let mut page = world.listen_with_page("concert", &kim, "older").await;
    page.ticket().await;
    let changed = page.said().await.unwrap();
    assert_eq!(changed.name.as_deref(), Some("page"));
    assert_eq!(changed.data.unwrap()["message"], "Doors open at 8.");
    drop(page);
    let calls = world.store.calls("snapshot");
    for _ in 0..100 {
        assert_eq!(
            world.get("/wait/concert/page.json").await.header("cache-control"),
            "public, max-age=1"
        );
    }
    assert!(world.store.calls("snapshot") - calls <= 1, "texts cost the store nothing");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_join_without_scripts_that_is_refused_says_why() {
    let world = World::with_item("concert").await;
    let full = Policy { max_waiting: Some(1), ..Policy::default() };
    world.put("concert", 5, true, Some(full)).await;
    world.token("concert", "kim").await;
    let pressed = world.call(request(Method::POST, "/wait/concert", &[], "")).await;
    let home = pressed.header("location").to_owned();
    assert_eq!((pressed.status.as_u16(), home.as_str()), (303, "/wait/concert?refused=LINE_FULL"));
    let page = world.get(&home).await.text;
    assert!(page.contains("<h1>The line is full</h1>") && page.contains("Join the line"), "{page}");
    let other = world.get("/wait/concert?refused=A_CODE_OF_TOMORROW").await.text;
    assert!(other.contains("<h1>You could not join the line</h1>"), "{other}");
    world.end().await;
}
