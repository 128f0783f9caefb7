//! The OpenAPI 3.1 document, made from the table of routes and the types that are on the wire.

use std::collections::BTreeMap;

use daegi_runtime::{Code, Problem, problem};
use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::operations::{Answer, Listener, Operation, operations};

const COMPONENTS: &str = "/components/schemas";

/// Collects the schemas of everything that is mentioned. What we read and what we write have
/// different rules: a field that may be missing in a request is always there in an answer.
struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let generator = |contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.contract = contract;
            settings.definitions_path = COMPONENTS.into();
            settings.into_generator()
        };
        Self { read: generator(Contract::Deserialize), written: generator(Contract::Serialize) }
    }

    /// All of them, by name.
    fn components(mut self) -> Map<String, Value> {
        let mut all = self.read.take_definitions(true);
        all.extend(self.written.take_definitions(true));
        all
    }
}

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations() {
        let described = describe(&operation, &mut schemas);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": info(),
        "tags": [
            { "name": tag(Listener::Public), "description": "For people and their browsers." },
            { "name": tag(Listener::Internal), "description": "For services, on the internal listener only." },
        ],
        "paths": paths,
        "components": {
            "schemas": schemas.components(),
            "securitySchemes": { "ticket": { "type": "http", "scheme": "bearer", "description": "The ticket's token, where `me` stands for it in the address." } },
        },
    })
}

fn info() -> Value {
    json!({
        "title": "daegi",
        "version": env!("CARGO_PKG_VERSION"),
        "summary": "A virtual waiting room.",
        "description": "People join a line per item, see their exact place, and are let in in order. Errors are RFC 9457 problems with a stable `code`.",
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    })
}

fn describe(operation: &Operation, schemas: &mut Schemas) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [tag(operation.listener)],
        "responses": responses(operation, schemas),
    });
    if !operation.about.is_empty() {
        described["description"] = operation.about.into();
    }
    if !operation.parameters.is_empty() {
        described["parameters"] = parameters(operation, schemas);
    }
    if operation.parameters.iter().any(|parameter| parameter.name == "token") {
        described["security"] = json!([{}, { "ticket": [] }]);
    }
    if let Some(body) = operation.body {
        let schema = (body.schema)(&mut schemas.read);
        let content = json!({ "application/json": { "schema": schema } });
        described["requestBody"] = json!({ "required": body.required, "content": content });
    }
    described
}

fn parameters(operation: &Operation, schemas: &mut Schemas) -> Value {
    let parameter = |parameter: &crate::operations::Parameter| {
        json!({
            "name": parameter.name,
            "in": parameter.place,
            "required": parameter.required,
            "description": parameter.about,
            "schema": (parameter.schema)(&mut schemas.read),
        })
    };
    operation.parameters.iter().map(parameter).collect()
}

fn responses(operation: &Operation, schemas: &mut Schemas) -> Value {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    for answer in &operation.answers {
        responses.insert(answer.status.to_string(), good(answer, schemas));
    }
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in &operation.problems {
        by_status.entry(code.status().as_u16()).or_default().push(*code);
    }
    for (status, codes) in by_status {
        responses.insert(status.to_string(), bad(&codes, schemas));
    }
    json!(responses)
}

fn good(answer: &Answer, schemas: &mut Schemas) -> Value {
    let mut response = json!({ "description": answer.about });
    if let Some((media, schema)) = answer.content {
        let content = schema.map(|schema| json!({ "schema": schema(&mut schemas.written) }));
        response["content"] = json!({ media: content.unwrap_or_else(|| json!({})) });
    }
    for (name, about) in answer.headers {
        response["headers"][name] =
            json!({ "description": about, "schema": { "type": "integer" } });
    }
    response
}

/// Several codes share a status; all of them are named.
fn bad(codes: &[Code], schemas: &mut Schemas) -> Value {
    let named: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
    let schema = schemas.written.subschema_for::<Problem>();
    let mut response = json!({
        "description": named.join(" or "),
        "content": { problem::CONTENT: { "schema": schema } },
    });
    let retry = [Code::Unavailable, Code::LineFull, Code::StoreFull];
    if codes.iter().any(|code| retry.contains(code)) {
        let about = "Seconds until it makes sense to try again.";
        response["headers"]["Retry-After"] =
            json!({ "description": about, "schema": { "type": "integer" } });
    }
    response
}

fn tag(listener: Listener) -> &'static str {
    match listener {
        Listener::Public => "public",
        Listener::Internal => "internal",
    }
}
