//! The OpenAPI 3.1 document, generated from the table of routes and the wire types.

use std::collections::BTreeMap;

use daegi_runtime::{Code, Problem, problem};
use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::routes::{Listener, ResponseSpec, Route, routes};

const COMPONENTS: &str = "/components/schemas";

/// Collects the referenced schemas. Requests and responses have different contracts: a field that is
/// optional in a request is always present in a response.
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

    /// Returns all schemas, by name.
    fn components(mut self) -> Map<String, Value> {
        let mut all = self.read.take_definitions(true);
        all.extend(self.written.take_definitions(true));
        all
    }
}

/// Returns the document.
#[must_use]
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let described = describe(&route, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": info(),
        "tags": [
            { "name": tag(Listener::Public), "description": "For clients." },
            { "name": tag(Listener::Internal), "description": "For services, on the internal listener only." },
        ],
        "paths": paths,
        "components": {
            "schemas": schemas.components(),
            "securitySchemes": { "ticket": { "type": "http", "scheme": "bearer", "description": "The ticket's token, if the path has `me` instead." } },
        },
    })
}

fn info() -> Value {
    json!({
        "title": "daegi",
        "version": env!("CARGO_PKG_VERSION"),
        "summary": "A virtual waiting room.",
        "description": "Users join the line of an item, see their exact position, and are admitted in order. Errors are RFC 9457 problems with a stable `code`.",
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    })
}

fn describe(route: &Route, schemas: &mut Schemas) -> Value {
    let mut described = json!({
        "operationId": route.id,
        "summary": route.summary,
        "tags": [tag(route.listener)],
        "responses": responses(route, schemas),
    });
    if !route.description.is_empty() {
        described["description"] = route.description.into();
    }
    if !route.parameters.is_empty() {
        described["parameters"] = parameters(route, schemas);
    }
    if route.parameters.iter().any(|parameter| parameter.name == "token") {
        described["security"] = json!([{}, { "ticket": [] }]);
    }
    if let Some(body) = route.body {
        let schema = (body.schema)(&mut schemas.read);
        let content = json!({ "application/json": { "schema": schema } });
        described["requestBody"] = json!({ "required": body.required, "content": content });
    }
    described
}

fn parameters(route: &Route, schemas: &mut Schemas) -> Value {
    let parameter = |parameter: &crate::routes::Parameter| {
        json!({
            "name": parameter.name,
            "in": parameter.location,
            "required": parameter.required,
            "description": parameter.description,
            "schema": (parameter.schema)(&mut schemas.read),
        })
    };
    route.parameters.iter().map(parameter).collect()
}

fn responses(route: &Route, schemas: &mut Schemas) -> Value {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    for response in &route.responses {
        responses.insert(response.status.to_string(), success(response, schemas));
    }
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in &route.problems {
        by_status.entry(code.status().as_u16()).or_default().push(*code);
    }
    for (status, codes) in by_status {
        responses.insert(status.to_string(), problems(&codes, schemas));
    }
    json!(responses)
}

fn success(spec: &ResponseSpec, schemas: &mut Schemas) -> Value {
    let mut response = json!({ "description": spec.description });
    if let Some((media, schema)) = spec.content {
        let content = schema.map(|schema| json!({ "schema": schema(&mut schemas.written) }));
        response["content"] = json!({ media: content.unwrap_or_else(|| json!({})) });
    }
    for (name, description) in spec.headers {
        response["headers"][name] =
            json!({ "description": description, "schema": { "type": "integer" } });
    }
    response
}

/// Describes the problems of one status, with all their codes.
fn problems(codes: &[Code], schemas: &mut Schemas) -> Value {
    let named: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
    let schema = schemas.written.subschema_for::<Problem>();
    let mut response = json!({
        "description": named.join(" or "),
        "content": { problem::CONTENT: { "schema": schema } },
    });
    let retry = [Code::Unavailable, Code::LineFull, Code::StoreFull];
    if codes.iter().any(|code| retry.contains(code)) {
        let description = "Seconds until a retry.";
        response["headers"]["Retry-After"] =
            json!({ "description": description, "schema": { "type": "integer" } });
    }
    response
}

fn tag(listener: Listener) -> &'static str {
    match listener {
        Listener::Public => "public",
        Listener::Internal => "internal",
    }
}
