//! The waiting page as the server writes it.

use axum::http::Method;
use daegi_domain::{
    Branding, Colour, FrameAncestor, LaneName, LanePolicy, PageLink, PageLinks, PageText, Policy,
};

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
    assert!(size < 60 * 1024, "{size} bytes");
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
async fn a_chosen_language_is_remembered_in_a_cookie() {
    let harness = Harness::with_item("concert").await;
    let chosen = harness.get("/wait/concert?lang=zh-Hant").await;
    assert_eq!((chosen.status.as_u16(), chosen.header("location")), (303, "/wait/concert"));
    let cookie = chosen.header("set-cookie").split(';').next().unwrap().to_owned();
    assert_eq!(cookie, "daegi-language=zh-Hant");
    let headers = [("accept-language", "ko"), ("cookie", cookie.as_str())];
    let page = harness.page("concert", &headers).await;
    assert!(page.text.contains("<html lang=\"zh-Hant\"") && page.text.contains("aria-current"));
    let hong_kong = harness.page("concert", &[("accept-language", "zh-HK")]).await;
    assert!(hong_kong.text.contains("<html lang=\"zh-Hant\""));
    for query in ["lang=de", "lang=", "lang=ko;x"] {
        let page = harness.get(&format!("/wait/concert?{query}")).await;
        assert_eq!(page.status, 200, "{query}");
    }
    let foreign = harness.get("/wait/%2F%2Felsewhere.example?lang=ko").await;
    assert_eq!(foreign.header("location"), "/", "an address that is no item leads nowhere else");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_operator_writes_texts_and_links_per_language() {
    let harness = Harness::with_item("concert").await;
    let texts = |english: &str, korean: &str| {
        let json = serde_json::json!({ "en": english, "ko": korean });
        serde_json::from_value::<PageText>(json).unwrap()
    };
    let link = PageLink {
        url: "https://shop.example/more".into(),
        label: Some(texts("More", "더 보기")),
    };
    let page = Branding {
        message: Some(texts("First line.\nSecond.", "첫째 줄.\n둘째.")),
        links: PageLinks { home: Some(link), ..PageLinks::default() },
        ..Branding::default()
    };
    harness.put("concert", 0, true, Some(Policy { page, ..Policy::default() })).await;
    let in_language = async |language: &str, text: &str| {
        let shown = async || {
            let page = harness.page("concert", &[("accept-language", language)]).await.text;
            page.contains(text).then_some(page)
        };
        daegi_testkit::eventually(crate::harness::TEST_TIMEOUT, text, shown).await
    };
    let english = in_language("en", "<p class=\"message\">First line.\nSecond.</p>").await;
    let link =
        |label: &str| format!("<a class=\"button\" href=\"https://shop.example/more\">{label}</a>");
    assert!(english.contains(&link("More")) && !english.contains("둘째"), "{english}");
    let korean = in_language("ko", "<p class=\"message\">첫째 줄.\n둘째.</p>").await;
    assert!(korean.contains(&link("더 보기")), "{korean}");
    let thai = in_language("th", "<p class=\"message\">First line.\nSecond.</p>").await;
    assert!(thai.contains(&link("More")), "{thai}");
    let json = harness.get("/wait/concert/page.json").await.json();
    assert_eq!(json["message"], "First line.\nSecond.");
    assert_eq!(json["languages"]["ko"]["message"], "첫째 줄.\n둘째.");
    assert_eq!(json["languages"]["ko"]["links"]["soldOut"]["label"], "더 보기");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_root_answers_a_person() {
    let harness = Harness::with_item("concert").await;
    let root = harness.call(request(Method::GET, "/", &[("accept-language", "ko")], "")).await;
    assert_eq!(root.status, 200);
    assert_eq!(root.header("content-type"), "text/html; charset=utf-8");
    assert!(
        root.text.contains("온라인 대기실입니다") && !root.text.contains("concert"),
        "{}",
        root.text
    );
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_handover_gives_the_token_to_another_device_once() {
    let harness = Harness::with_item("concert").await;
    let kim = harness.token("concert", "kim").await;
    let line = "/api/v1/item/concert/waiting-queue";
    let bearer = format!("Bearer {kim}");
    let headers = [("authorization", bearer.as_str())];
    let mine = format!("{line}/me/handover");
    let issue = async || harness.call(request(Method::POST, &mine, &headers, "")).await.json();
    let used = async || {
        harness.call(request(Method::GET, &mine, &headers, "")).await.json()["usedUpTo"].clone()
    };
    let take = async |code: &str, item: &str| {
        let uri = format!("/api/v1/item/{item}/waiting-queue/handover");
        let body = serde_json::json!({ "code": code }).to_string();
        harness
            .call(request(Method::POST, &uri, &[("content-type", "application/json")], &body))
            .await
    };
    let first = issue().await;
    let code = first["code"].as_str().unwrap();
    assert_eq!(first["expiresInMs"], 120_000);
    assert!(used().await.is_null() && !code.contains(&kim));
    take(code, "other").await.assert_problem(403, "INVALID_CODE");
    let taken = take(code, "concert").await.json();
    assert_eq!(
        (&taken["token"], &taken["position"]),
        (&serde_json::json!(kim), &serde_json::json!(1))
    );
    take(code, "concert").await.assert_problem(403, "INVALID_CODE");
    assert_eq!(used().await, first["issuedAt"], "the first device sees that the code was used");
    harness.clock.advance(std::time::Duration::from_millis(1));
    let second = issue().await;
    harness.clock.advance(std::time::Duration::from_secs(121));
    take(second["code"].as_str().unwrap(), "concert").await.assert_problem(403, "INVALID_CODE");
    harness
        .call(request(Method::POST, &format!("{line}/forged/handover"), &[], ""))
        .await
        .assert_problem(401, "INVALID_TOKEN");
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
        assert!(page.text.contains("We can&#39;t find this line"));
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
        css: Some("h1{letter-spacing:.1em}".into()),
        frame_ancestors: vec![FrameAncestor::parse("https://shop.example").unwrap()],
        ..Branding::default()
    };
    harness.put("concert", 5, true, Some(Policy { page, ..Policy::default() })).await;
    let shown = async || {
        let page = harness.page("concert", &[]).await.text;
        page.contains("&#60;Friday&#62; &#34;night&#34;").then_some(page)
    };
    let page = daegi_testkit::eventually(crate::harness::TEST_TIMEOUT, "the look", shown).await;
    assert!(page.contains("See you there.") && page.contains("src=\"data:image/png;base64,AAAA\""));
    assert!(!page.contains("<Friday>"));
    let address =
        page.split('"').find(|text| text.starts_with("/wait/concert/look.css?v=")).unwrap();
    let style = harness.get(address).await;
    assert!(style.text.starts_with(":root{--accent:#0a3d91;"), "{}", style.text);
    assert!(style.text.ends_with("h1{letter-spacing:.1em}"), "{}", style.text);
    assert_eq!(style.header("cache-control"), "public, max-age=31536000, immutable");
    let other = harness.get("/wait/concert/look.css?v=0").await;
    assert_eq!(
        other.header("cache-control"),
        "no-store",
        "of a pod with another version of the item"
    );
    let policy = harness.page("concert", &[]).await.header("content-security-policy").to_owned();
    assert!(policy.ends_with("frame-ancestors https://shop.example"), "{policy}");
    let plain = harness.page("nothing", &[]).await.header("content-security-policy").to_owned();
    assert!(plain.ends_with("frame-ancestors 'none'"), "{plain}");
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
