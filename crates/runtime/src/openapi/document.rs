//! Generates the OpenAPI 3.1 document from operations and the types on the wire.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use super::{Group, Operation, Parameter, ResponseSpec};
use crate::Code;
use crate::problem::{self, Problem};

const COMPONENTS: &str = "/components/schemas";

/// The parts of a document that are not generated.
#[derive(Debug, Default)]
pub struct Document {
    /// `info`.
    pub info: Value,
    /// The path that all paths are relative to; empty if they are absolute.
    pub base: &'static str,
    /// `security` of all operations; null if there is none.
    pub security: Value,
    /// `components.securitySchemes`.
    pub security_schemes: Value,
    /// Problems that every operation may return.
    pub problems: Vec<Code>,
    /// Whether every operation has a `default` response for any other problem.
    pub has_default_problem: bool,
    /// A parameter and a security scheme: operations with this parameter accept the scheme
    /// optionally.
    pub optional_security: Option<(&'static str, &'static str)>,
}

/// Collects the schemas of all types. Requests and responses have different rules: a field that may be
/// missing in a request is always present in a response.
struct Schemas {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let generator = |contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.contract = contract;
            settings.definitions_path = COMPONENTS.into();
            settings.into_generator()
        };
        Self {
            requests: generator(Contract::Deserialize),
            responses: generator(Contract::Serialize),
        }
    }

    /// Returns all schemas by name. A type in requests and responses keeps the schema of requests, which
    /// requires fewer fields.
    fn components(mut self) -> Map<String, Value> {
        let mut all = self.responses.take_definitions(true);
        all.extend(self.requests.take_definitions(true));
        all
    }
}

impl Document {
    /// Generates the document of these operations.
    #[must_use]
    pub fn generate<S>(&self, groups: &[Group<S>]) -> Value {
        let mut schemas = Schemas::new();
        let mut paths: Map<String, Value> = Map::new();
        for group in groups {
            for operation in &group.operations {
                let mut described = self.describe(operation, &mut schemas);
                described["tags"] = json!([group.tag]);
                let path = paths.entry(operation.path).or_insert_with(|| json!({}));
                path[operation.method] = described;
            }
        }
        let tag = |group: &Group<S>| json!({ "name": group.tag, "description": group.description });
        let mut document = json!({
            "openapi": "3.1.0",
            "info": self.info,
            "tags": groups.iter().map(tag).collect::<Value>(),
            "paths": paths,
            "components": {
                "schemas": schemas.components(),
                "securitySchemes": self.security_schemes,
            },
        });
        if !self.base.is_empty() {
            document["servers"] = json!([{ "url": self.base }]);
        }
        if !self.security.is_null() {
            document["security"] = self.security.clone();
        }
        document
    }

    fn describe<S>(&self, operation: &Operation<S>, schemas: &mut Schemas) -> Value {
        let mut described = json!({
            "operationId": operation.id,
            "summary": operation.summary,
            "responses": self.responses(operation, schemas),
        });
        if !operation.description.is_empty() {
            described["description"] = operation.description.into();
        }
        if !operation.parameters.is_empty() {
            described["parameters"] = parameters(&operation.parameters, schemas);
        }
        if let Some((parameter, scheme)) = self.optional_security
            && operation.parameters.iter().any(|one| one.name == parameter)
        {
            described["security"] = json!([{}, { scheme: [] }]);
        }
        if let Some(body) = &operation.body {
            let mut content = json!({ "schema": (body.schema)(&mut schemas.requests) });
            if let Some(example) = &body.example {
                content["example"] = example.clone();
            }
            described["requestBody"] =
                json!({ "required": body.required, "content": { "application/json": content } });
        }
        described
    }

    fn responses<S>(&self, operation: &Operation<S>, schemas: &mut Schemas) -> Value {
        let mut responses: BTreeMap<String, Value> = BTreeMap::new();
        for response in &operation.responses {
            responses.insert(response.status.to_string(), success(response, schemas));
        }
        let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
        for code in self.problems.iter().chain(&operation.problems) {
            by_status.entry(code.status().as_u16()).or_default().push(*code);
        }
        for (status, codes) in by_status {
            responses.insert(status.to_string(), failure(&codes, schemas));
        }
        if self.has_default_problem {
            let schema = schemas.responses.subschema_for::<Problem>();
            let content = json!({ problem::CONTENT: { "schema": schema } });
            let default = json!({ "description": "Any other problem.", "content": content });
            responses.insert("default".to_owned(), default);
        }
        json!(responses)
    }
}

fn parameters(parameters: &[Parameter], schemas: &mut Schemas) -> Value {
    let parameter = |parameter: &Parameter| {
        json!({
            "name": parameter.name,
            "in": parameter.location,
            "required": parameter.required,
            "description": parameter.description,
            "schema": (parameter.schema)(&mut schemas.requests),
        })
    };
    parameters.iter().map(parameter).collect()
}

fn success(response: &ResponseSpec, schemas: &mut Schemas) -> Value {
    let mut described = json!({ "description": response.description });
    if let Some((media_type, schema)) = response.content {
        let content = schema.map(|schema| json!({ "schema": schema(&mut schemas.responses) }));
        described["content"] = json!({ media_type: content.unwrap_or_else(|| json!({})) });
    }
    for (name, description) in response.headers {
        described["headers"][name] = integer_header(description);
    }
    described
}

/// Describes all codes of one status.
fn failure(codes: &[Code], schemas: &mut Schemas) -> Value {
    let named: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
    let schema = schemas.responses.subschema_for::<Problem>();
    let mut described = json!({
        "description": named.join(" or "),
        "content": { problem::CONTENT: { "schema": schema } },
    });
    let retry = [Code::Unavailable, Code::LineFull, Code::StoreFull];
    if codes.iter().any(|code| retry.contains(code)) {
        described["headers"]["Retry-After"] = integer_header("Seconds until a retry.");
    }
    described
}

fn integer_header(description: &str) -> Value {
    json!({ "description": description, "schema": { "type": "integer" } })
}
