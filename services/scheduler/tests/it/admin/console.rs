//! The console's page, which needs no token and holds no data.

use axum::body::Body;
use axum::http::Request;

use super::harness::AdminHarness;

#[tokio::test]
async fn the_page_and_its_files_need_no_token_and_load_nothing_foreign() {
    let admin = AdminHarness::open().await;
    let page = admin.page("/admin/").await;
    assert_eq!((page.0.as_u16(), page.1["cache-control"].as_bytes()), (200, &b"no-cache"[..]));
    let policy = page.1["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(!policy.contains("http"), "{policy}");
    for (file, kind) in [("console.js", "text/javascript"), ("console.css", "text/css")] {
        let named = page.2.split(file).nth(1).unwrap().split('"').next().unwrap();
        let asset = admin.page(&format!("/admin/{file}{named}")).await;
        assert!(asset.1["content-type"].to_str().unwrap().starts_with(kind));
        assert!(asset.1["cache-control"].to_str().unwrap().contains("immutable"), "{named}");
        let old = admin.page(&format!("/admin/{file}?v=old")).await;
        assert_eq!(old.1["cache-control"], "no-store", "of another build");
    }
    let request = Request::get("/admin").body(Body::empty()).unwrap();
    let home = admin.send(request).await;
    assert_eq!(
        (home.status.as_u16(), &home.headers["location"]),
        (308, &"/admin/".parse().unwrap())
    );
}
