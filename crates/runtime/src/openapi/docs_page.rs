//! The OpenAPI document as an HTML page: one style sheet, no scripts. The markup is in
//! `templates/docs.html`.

use std::borrow::Cow;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::{Group, Operation};
use crate::Code;

const STYLE: &str = concat!(include_str!("../../../../web/palette.css"), include_str!("docs.css"));
const CACHE_FOR_5_MINUTES: &str = "public, max-age=300";
/// The page runs no scripts, loads only its own style sheet and cannot be framed.
const CONTENT_SECURITY_POLICY_VALUE: &str = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Renders the page of a document that was generated from these groups. The style sheet is expected at
/// `docs.css` beside the page.
#[must_use]
pub fn render_page<S>(document: &Value, groups: &[Group<S>], document_url: &str) -> String {
    let info = &document["info"];
    let page = Page {
        title: text(&info["title"]),
        version: text(&info["version"]),
        about: Prose::from(&info["description"]),
        document_url,
        groups: groups.iter().map(|group| GroupView::new(document, group)).collect(),
        schemas: fields(&document["components"]["schemas"]).map(SchemaView::from).collect(),
        problems: problems(&document["components"]["schemas"]["Code"]["oneOf"]),
    };
    page.to_string()
}

/// Serves a rendered page.
pub fn serve_page(page: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, CACHE_FOR_5_MINUTES),
        (CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_VALUE),
    ];
    (headers, page).into_response()
}

/// Serves the style sheet of the page.
pub async fn serve_style() -> Response {
    let headers = [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, CACHE_FOR_5_MINUTES)];
    (headers, STYLE).into_response()
}

#[derive(Template)]
#[template(path = "docs.html")]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    about: Prose<'a>,
    document_url: &'a str,
    groups: Vec<GroupView<'a>>,
    schemas: Vec<SchemaView<'a>>,
    problems: Vec<ProblemView<'a>>,
}

struct GroupView<'a> {
    name: &'a str,
    about: Prose<'a>,
    operations: Vec<OperationView<'a>>,
}

struct OperationView<'a> {
    id: &'a str,
    method: &'a str,
    path: String,
    summary: &'a str,
    about: Prose<'a>,
    inputs: Vec<Row<'a>>,
    outputs: Vec<Row<'a>>,
    /// The example of the body.
    example: Option<String>,
}

struct SchemaView<'a> {
    name: &'a str,
    about: Prose<'a>,
    /// What the first column of the rows shows.
    heading: &'static str,
    /// The fields of an object or the values of an enumeration.
    rows: Vec<Row<'a>>,
    /// The type, if there are no rows.
    kind: Prose<'a>,
    example: Option<String>,
}

struct ProblemView<'a> {
    code: Code,
    about: Prose<'a>,
}

/// One row of a table.
struct Row<'a> {
    name: Prose<'a>,
    kind: Prose<'a>,
    about: Prose<'a>,
}

/// Text with inline markup.
#[derive(Template, Default)]
#[template(
    ext = "html",
    source = "{% for part in parts %}{% match part %}\
        {% when Part::Text(text) %}{{ text }}\
        {% when Part::Code(text) %}<code>{{ text }}</code>\
        {% when Part::Note(text) %} <small>{{ text }}</small>\
        {% when Part::Schema(name) %}<a href=\"#schema-{{ name }}\">{{ name }}</a>\
        {% endmatch %}{% endfor %}"
)]
struct Prose<'a> {
    parts: Vec<Part<'a>>,
}

enum Part<'a> {
    Text(Cow<'a, str>),
    Code(Cow<'a, str>),
    /// A remark on the text before it.
    Note(String),
    /// A link to a schema.
    Schema(&'a str),
}

/// `Prose` is safe HTML, because its template escapes every part.
impl HtmlSafe for Prose<'_> {}

/// Parses text in which backticks mark code.
impl<'a> From<&'a Value> for Prose<'a> {
    fn from(value: &'a Value) -> Self {
        let parts = text(value).split('`').enumerate();
        let part = |(index, part): (usize, &'a str)| match index % 2 {
            0 => Part::Text(part.into()),
            _ => Part::Code(part.into()),
        };
        Self { parts: parts.map(part).collect() }
    }
}

impl<'a, const N: usize> From<[Part<'a>; N]> for Prose<'a> {
    fn from(parts: [Part<'a>; N]) -> Self {
        Self { parts: parts.into() }
    }
}

impl<'a> GroupView<'a> {
    fn new<S>(document: &'a Value, group: &'a Group<S>) -> Self {
        let base = text(&document["servers"][0]["url"]);
        let view = |operation: &'a Operation<S>| {
            let described = &document["paths"][operation.path][operation.method];
            let example = body_example(document, described);
            OperationView { example, ..OperationView::new(base, operation, described) }
        };
        Self {
            name: group.tag,
            about: Prose { parts: vec![Part::Text(group.description.into())] },
            operations: group.operations.iter().map(view).collect(),
        }
    }
}

impl<'a> OperationView<'a> {
    fn new<S>(base: &str, operation: &'a Operation<S>, described: &'a Value) -> Self {
        let body = &described["requestBody"];
        let content = fields(&body["content"]).next();
        let body = content.map(|(media_type, content)| Row {
            name: [Part::Text("body".into()), note(media_type, &body["required"])].into(),
            kind: type_name(&content["schema"]),
            about: Prose::default(),
        });
        let parameters = items(&described["parameters"]).map(|parameter| Row {
            name: named(
                text(&parameter["name"]),
                note(text(&parameter["in"]), &parameter["required"]),
            ),
            kind: type_name(&parameter["schema"]),
            about: Prose::from(&parameter["description"]),
        });
        Self {
            id: operation.id,
            method: operation.method,
            path: format!("{base}{}", operation.path),
            summary: operation.summary.trim_end_matches('.'),
            about: Prose::from(&described["description"]),
            inputs: parameters.chain(body).collect(),
            outputs: fields(&described["responses"]).map(response).collect(),
            example: None,
        }
    }
}

/// Returns the example of the body, or else of its schema.
fn body_example(document: &Value, described: &Value) -> Option<String> {
    let (_, content) = fields(&described["requestBody"]["content"]).next()?;
    let reference = content["schema"]["$ref"].as_str();
    let schema = reference.and_then(|name| document.pointer(name.trim_start_matches('#')));
    example(&content["example"]).or_else(|| example(&schema?["examples"][0]))
}

fn response<'a>((status, response): (&'a str, &'a Value)) -> Row<'a> {
    let content = fields(&response["content"]).next();
    let kind = content.map(|(media_type, content)| match &content["schema"] {
        Value::Null => [Part::Text(media_type.into())].into(),
        schema => type_name(schema),
    });
    Row {
        name: [Part::Code(status.into())].into(),
        kind: kind.unwrap_or_default(),
        about: Prose::from(&response["description"]),
    }
}

impl<'a> From<(&'a str, &'a Value)> for SchemaView<'a> {
    fn from((name, schema): (&'a str, &'a Value)) -> Self {
        let required = |name: &str| items(&schema["required"]).any(|required| required == name);
        let property = |(name, field): (&'a str, &'a Value)| Row {
            name: match required(name) {
                true => [Part::Code(name.into())].into(),
                false => named(name, Part::Note("optional".into())),
            },
            kind: type_name(field),
            about: Prose::from(&field["description"]),
        };
        let value = |value: &'a Value| Row {
            name: [Part::Code(text(&value["const"]).into())].into(),
            kind: Prose::default(),
            about: Prose::from(&value["description"]),
        };
        let properties: Vec<_> = fields(&schema["properties"]).map(property).collect();
        let (heading, rows) = match properties.is_empty() {
            false => ("Field", properties),
            true => ("Value", items(&schema["oneOf"]).map(value).collect()),
        };
        Self {
            name,
            about: Prose::from(&schema["description"]),
            heading,
            rows,
            kind: type_name(schema),
            example: example(&schema["examples"][0]),
        }
    }
}

/// All problem codes, each with the anchor that the `type` of a problem refers to.
fn problems(described: &Value) -> Vec<ProblemView<'_>> {
    let view = |code: &Code| {
        let known = items(described).find(|entry| entry["const"] == code.as_str());
        let about = known.map(|entry| Prose::from(&entry["description"])).unwrap_or_default();
        ProblemView { code: *code, about }
    };
    Code::ALL.iter().map(view).collect()
}

/// Returns a short name of a schema, with a link if it is a component.
fn type_name(schema: &Value) -> Prose<'_> {
    if let Some(reference) = schema["$ref"].as_str() {
        return [Part::Schema(reference.rsplit('/').next().unwrap_or(reference))].into();
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let mut parts = Vec::new();
        for choice in choices {
            if !parts.is_empty() {
                parts.push(Part::Text(" or ".into()));
            }
            parts.extend(type_name(choice).parts);
        }
        return Prose { parts };
    }
    let kind: Cow<'_, str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or ").into(),
        kind => text(kind).into(),
    };
    let mut parts = vec![Part::Text(kind), Part::Text(limits(schema).into())];
    if let Some(pattern) = schema["pattern"].as_str() {
        parts.extend([Part::Text(", ".into()), Part::Code(pattern.into())]);
    }
    if schema["items"].is_object() {
        parts.push(Part::Text(" of ".into()));
        parts.extend(type_name(&schema["items"]).parts);
    }
    Prose { parts }
}

fn limits(schema: &Value) -> String {
    let range = |low: &str, high: &str, unit: &str| {
        let (low, high) = (schema[low].as_u64(), schema[high].as_u64());
        high.map(|high| format!(", {} to {high}{unit}", low.unwrap_or(0))).unwrap_or_default()
    };
    range("minimum", "maximum", "") + &range("minLength", "maxLength", " characters")
}

fn named<'a>(name: &'a str, note: Part<'a>) -> Prose<'a> {
    [Part::Code(name.into()), note].into()
}

fn note<'a>(place: &str, required: &Value) -> Part<'a> {
    Part::Note(format!("{place}{}", if *required == true { "" } else { ", optional" }))
}

fn example(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| format!("{value:#}"))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn fields(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_have_readable_names() {
        let name_of = |schema: Value| type_name(&schema).to_string();
        let eta = json!({ "$ref": "#/components/schemas/Eta" });
        let link = "<a href=\"#schema-Eta\">Eta</a>";
        assert_eq!(name_of(json!({ "type": ["string", "null"] })), "string or null");
        assert_eq!(
            name_of(json!({ "anyOf": [eta, { "type": "null" }] })),
            format!("{link} or null")
        );
        assert_eq!(
            name_of(json!({ "type": "integer", "minimum": 0, "maximum": 9 })),
            "integer, 0 to 9"
        );
        assert_eq!(name_of(json!({ "type": "array", "items": eta })), format!("array of {link}"));
    }

    #[test]
    fn text_of_a_document_is_escaped() {
        assert!(!type_name(&json!({ "type": "<script>" })).to_string().contains("<script>"));
        let prose = Prose::from(&json!("a `<b>` & <c>")).to_string();
        assert_eq!(prose, "a <code>&#60;b&#62;</code> &#38; &#60;c&#62;");
    }
}
