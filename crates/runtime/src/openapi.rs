//! Routes with their documentation. A service lists its operations once; the router, the OpenAPI 3.1
//! document and the docs page are built from the list, so that no route is undocumented and no documented
//! route is missing.

mod docs_page;
mod document;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, any, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::Code;

pub use docs_page::{render_page, serve_page, serve_style};
pub use document::Document;

/// Returns the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Operations that belong together, in the order of the docs page.
pub struct Group<S> {
    /// The tag of the operations.
    pub tag: &'static str,
    /// What they are for.
    pub description: &'static str,
    /// The operations.
    pub operations: Vec<Operation<S>>,
}

/// One method of one path: its handler and its documentation.
pub struct Operation<S> {
    /// The method in lower case.
    pub method: &'static str,
    /// The path below the base path of the document.
    pub path: &'static str,
    /// The `operationId`.
    pub id: &'static str,
    /// One line.
    pub summary: &'static str,
    /// More, if the summary does not suffice.
    pub description: &'static str,
    /// Path, query and header parameters.
    pub parameters: Vec<Parameter>,
    /// The JSON body.
    pub body: Option<Body>,
    /// Responses that are not problems.
    pub responses: Vec<ResponseSpec>,
    /// The codes of problems that the operation itself returns.
    pub problems: Vec<Code>,
    handler: MethodRouter<S>,
}

/// A path, query or header parameter.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// The name.
    pub name: &'static str,
    /// `path`, `query` or `header`.
    pub location: &'static str,
    /// Whether it must be given.
    pub required: bool,
    /// What it means.
    pub description: &'static str,
    /// Its schema.
    pub schema: SchemaOf,
}

/// A JSON body.
#[derive(Clone)]
pub struct Body {
    /// Whether it must be given.
    pub required: bool,
    /// Its schema.
    pub schema: SchemaOf,
    /// A valid body.
    pub example: Option<Value>,
}

/// A response that is not a problem.
#[derive(Clone, Copy)]
pub struct ResponseSpec {
    /// The status.
    pub status: u16,
    /// What it means.
    pub description: &'static str,
    /// The media type and, for JSON of the contract, its schema.
    pub content: Option<(&'static str, Option<SchemaOf>)>,
    /// Headers with their description.
    pub headers: &'static [(&'static str, &'static str)],
}

/// Builds the router of groups of operations, below a base path.
pub fn router<S>(base: &str, groups: impl IntoIterator<Item = Group<S>>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let add = |router: Router<S>, operation: Operation<S>| {
        router.route(&format!("{base}{}", operation.path), operation.handler)
    };
    groups.into_iter().flat_map(|group| group.operations).fold(Router::new(), add)
}

/// Returns the schema of `T`.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl<S> Operation<S>
where
    S: Clone + Send + Sync + 'static,
{
    /// An operation without parameters, body and responses.
    pub fn new<H, T>(
        (method, path): (&'static str, &'static str),
        (id, summary): (&'static str, &'static str),
        handler: H,
    ) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        Self {
            method,
            path,
            id,
            summary,
            description: "",
            parameters: Vec::new(),
            body: None,
            responses: Vec::new(),
            problems: Vec::new(),
            handler: on(filter(method), handler),
        }
    }

    /// An operation that is the same for every method, documented as GET.
    pub fn for_any_method<H, T>(
        path: &'static str,
        words: (&'static str, &'static str),
        handler: H,
    ) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let handler = any(handler);
        Self { handler, ..Self::new(("get", path), words, async || ()) }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Adds parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body<T: JsonSchema>(mut self, required: bool) -> Self {
        self.body = Some(Body { required, schema: schema_of::<T>, example: None });
        self
    }

    /// Adds an example to the body.
    #[must_use]
    pub fn with_example(mut self, example: Value) -> Self {
        self.body = self.body.map(|body| Body { example: Some(example), ..body });
        self
    }

    /// Adds a response.
    #[must_use]
    pub fn with_response(mut self, response: ResponseSpec) -> Self {
        self.responses.push(response);
        self
    }

    /// Adds problems.
    #[must_use]
    pub fn with_problems(mut self, problems: impl IntoIterator<Item = Code>) -> Self {
        self.problems.extend(problems);
        self
    }
}

impl ResponseSpec {
    /// A JSON response of this type.
    #[must_use]
    pub fn json<T: JsonSchema>(status: u16, description: &'static str) -> Self {
        let content = Some(("application/json", Some(schema_of::<T> as SchemaOf)));
        Self { status, description, content, headers: &[] }
    }

    /// A response of another media type.
    #[must_use]
    pub fn media(status: u16, description: &'static str, media_type: &'static str) -> Self {
        Self { status, description, content: Some((media_type, None)), headers: &[] }
    }

    /// Adds headers with their description.
    #[must_use]
    pub fn with_headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { headers, ..self }
    }

    /// A response without a body.
    #[must_use]
    pub fn empty(status: u16, description: &'static str) -> Self {
        Self { status, description, content: None, headers: &[] }
    }
}

fn filter(method: &str) -> MethodFilter {
    match method {
        "post" => MethodFilter::POST,
        "put" => MethodFilter::PUT,
        "patch" => MethodFilter::PATCH,
        "delete" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}
