//! Extractors reject with problems that name the reason.

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use axum::routing::{get, post};
use daegi_runtime::Code;
use daegi_runtime::http::{HttpService, JsonBody, PathParams, QueryParams};
use serde::Deserialize;

use crate::support::{self, call, problem};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Join {
    user_id: String,
}

#[derive(Deserialize)]
struct Wait {
    ms: u16,
}

fn router() -> HttpService {
    let routes = Router::new()
        .route("/join", post(async |JsonBody(join): JsonBody<Join>| join.user_id))
        .route(
            "/maybe",
            post(async |join: Option<JsonBody<Join>>| {
                join.map_or("anonymous".into(), |JsonBody(join)| join.user_id)
            }),
        )
        .route("/wait", get(async |QueryParams(wait): QueryParams<Wait>| wait.ms.to_string()))
        .route("/number/{n}", get(async |PathParams(n): PathParams<u16>| n.to_string()))
        .route("/broken", get(async |PathParams(n): PathParams<u16>| n.to_string()));
    HttpService::new(routes)
}

fn json(uri: &str, content_type: &str, body: &'static str) -> Request<Body> {
    let request = Request::post(uri).header(CONTENT_TYPE, content_type);
    request.body(Body::from(body)).unwrap_or_default()
}

#[tokio::test]
async fn every_json_content_type_is_accepted() {
    for content_type in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/cloudevents+json",
    ] {
        let request = json("/join", content_type, r#"{"userId":"kim"}"#);
        assert_eq!(call(router(), request).await.status(), StatusCode::OK, "{content_type}");
    }
}

#[tokio::test]
async fn an_invalid_body_is_a_problem_with_the_reason() {
    for (body, reason) in [
        ("", "the body is empty"),
        ("{", "the body is not JSON: EOF"),
        ("nope", "the body is not JSON: expected"),
        (r#"{"userId":"kim"} x"#, "the body is not JSON: trailing characters"),
        (r#"{"userId":7}"#, "the body does not fit: invalid type: integer `7`"),
        (r#"{"userId":"kim","x":1}"#, "the body does not fit: unknown field `x`"),
        ("{}", "the body does not fit: missing field `userId`"),
    ] {
        let response = call(router(), json("/join", "application/json", body)).await;
        let problem = problem(response).await.unwrap();
        assert_eq!(problem.code, Code::InvalidRequest);
        assert!(problem.detail.starts_with(reason), "{body}: {}", problem.detail);
    }
}

#[tokio::test]
async fn a_body_of_another_content_type_is_rejected() {
    for content_type in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let request = json("/join", content_type, r#"{"userId":"kim"}"#);
        let problem = problem(call(router(), request).await).await.unwrap();
        assert_eq!(problem.code, Code::UnsupportedMediaType, "{content_type}");
    }
}

#[tokio::test]
async fn an_optional_body_may_be_empty_but_not_invalid() {
    let response = call(router(), Request::post("/maybe").body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let response = call(router(), json("/maybe", "application/json", "{}")).await;
    assert_eq!(problem(response).await.unwrap().code, Code::InvalidRequest);
}

#[tokio::test]
async fn invalid_paths_and_queries_are_problems() {
    for uri in ["/wait", "/wait?ms=soon", "/wait?ms=70000", "/number/seven", "/number/%ff"] {
        let response = call(router(), support::get(uri).unwrap()).await;
        assert_eq!(problem(response).await.unwrap().code, Code::InvalidRequest, "{uri}");
    }
    for uri in ["/wait?ms=7", "/number/7"] {
        let response = call(router(), support::get(uri).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK, "{uri}");
    }
}

#[tokio::test]
async fn a_handler_that_does_not_fit_its_route_is_an_internal_error() {
    let response = call(router(), support::get("/broken").unwrap()).await;
    assert_eq!(problem(response).await.unwrap().code, Code::Internal);
}
