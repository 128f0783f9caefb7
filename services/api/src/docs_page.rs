//! The OpenAPI document as an HTML page: one style sheet, no scripts.

mod schema;

use daegi_runtime::Code;
use serde_json::Value;

use self::schema::{name_of, schemas};

/// The style sheet of the page.
pub(crate) const STYLE: &str = include_str!("docs_page/docs.css");

/// Renders the page.
pub(crate) fn render(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let head = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} API</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"stylesheet\" href=\"/docs.css\"></head><body>"
    );
    let parts = [
        head,
        header(document),
        "<main>".into(),
        tags(document),
        section("schemas", "Schemas", &schemas(document)),
        section("problems", "Problems", &problems(document)),
        "</main></body></html>\n".into(),
    ];
    parts.concat()
}

fn header(document: &Value) -> String {
    let info = &document["info"];
    let links: String = operations(document).map(|(path, method, operation)| {
        let id = text(&operation["operationId"]);
        let summary = text(&operation["summary"]);
        format!("<li><b class=\"{method}\">{method}</b><a href=\"#{id}\">{summary}</a><span>{}</span></li>", escape(path))
    }).collect();
    format!(
        "<header><h1>{} <small>{}</small></h1><p>{}</p><p>For programs: \
         <a href=\"/openapi.json\">openapi.json</a>. Further down: <a href=\"#schemas\">schemas</a> \
         and <a href=\"#problems\">problems</a>.</p><nav><ul>{links}</ul></nav></header>",
        text(&info["title"]),
        text(&info["version"]),
        prose(&info["description"]),
    )
}

fn tags(document: &Value) -> String {
    let tag = |tag: &Value| {
        let of_tag = |(_, _, operation): &(&str, &str, &Value)| operation["tags"][0] == tag["name"];
        let articles: String = operations(document).filter(of_tag).map(article).collect();
        let about = format!("<p>{}</p>", prose(&tag["description"]));
        let name = text(&tag["name"]);
        section(&format!("tag-{name}"), &format!("{name} routes"), &(about + &articles))
    };
    items(&document["tags"]).map(tag).collect()
}

fn article((path, method, operation): (&str, &str, &Value)) -> String {
    let id = text(&operation["operationId"]);
    let mut article = format!(
        "<article id=\"{id}\"><h3><b class=\"{method}\">{method}</b> <code>{}</code></h3><p><strong>{}.</strong> {}</p>",
        escape(path),
        text(&operation["summary"]),
        prose(&operation["description"]),
    );
    let inputs: String =
        items(&operation["parameters"]).map(parameter).collect::<String>() + &body(operation);
    if !inputs.is_empty() {
        article += &table(["Takes", "Type", ""], &inputs);
    }
    let responses: String =
        fields(&operation["responses"]).map(|(status, value)| response(status, value)).collect();
    article + &table(["Answers", "Type", ""], &responses) + "</article>"
}

fn parameter(parameter: &Value) -> String {
    let required = if parameter["required"] == true { "" } else { ", optional" };
    let place = format!("<small>{}{required}</small>", text(&parameter["in"]));
    let name = format!("<code>{}</code> {place}", text(&parameter["name"]));
    row(&name, &name_of(&parameter["schema"]), &prose(&parameter["description"]))
}

fn body(operation: &Value) -> String {
    let body = &operation["requestBody"];
    let Some((media, content)) = fields(&body["content"]).next() else {
        return String::new();
    };
    let required = if body["required"] == true { "" } else { ", optional" };
    let name = format!("body <small>{}{required}</small>", escape(media));
    row(&name, &name_of(&content["schema"]), "")
}

fn response(status: &str, response: &Value) -> String {
    let content = fields(&response["content"]).next();
    let shape = content.map(|(media, content)| match &content["schema"] {
        Value::Null => escape(media),
        schema => name_of(schema),
    });
    row(
        &format!("<code>{status}</code>"),
        &shape.unwrap_or_default(),
        &prose(&response["description"]),
    )
}

/// Renders all problem codes, each with the anchor that the `type` of a problem refers to.
fn problems(document: &Value) -> String {
    let known = &document["components"]["schemas"]["Code"]["oneOf"];
    let rows: String = Code::ALL
        .iter()
        .map(|code| {
            let about = items(known).find(|entry| entry["const"] == code.as_str());
            let about = about.map(|entry| prose(&entry["description"])).unwrap_or_default();
            let name = format!("<code id=\"{code}\">{code}</code>");
            row(
                &name,
                &code.status().as_u16().to_string(),
                &format!("<strong>{}.</strong> {about}", code.title()),
            )
        })
        .collect();
    table(["Code", "Status", ""], &rows)
}

/// Returns (path, method, operation) in the order of the table of routes, which JSON objects lack.
fn operations(document: &Value) -> impl Iterator<Item = (&'static str, &'static str, &Value)> {
    crate::routes::routes().into_iter().map(|operation| {
        let (path, method) = (operation.path, operation.method);
        (path, method, &document["paths"][path][method])
    })
}

fn section(id: &str, title: &str, content: &str) -> String {
    format!("<section id=\"{id}\"><h2>{title}</h2>{content}</section>")
}

fn table(heads: [&str; 3], rows: &str) -> String {
    let heads = heads.map(|head| format!("<th>{head}</th>")).concat();
    format!("<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
}

fn row(name: &str, shape: &str, about: &str) -> String {
    format!("<tr><td>{name}</td><td>{shape}</td><td>{about}</td></tr>")
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn fields(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

/// Escapes text and renders backticks as `<code>`.
fn prose(value: &Value) -> String {
    let text = text(value);
    let parts = text.split('`').enumerate();
    parts
        .map(
            |(index, part)| {
                if index % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }
            },
        )
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
