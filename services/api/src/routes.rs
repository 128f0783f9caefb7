//! The table of routes. Router, OpenAPI document and docs page are generated from it, so that a route
//! cannot be served without being documented, or the other way round.

mod table;

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use daegi_runtime::Code;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::tickets::TicketService;

pub(crate) use table::routes;

/// Where a route is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    Public,
    Internal,
}

/// Generates the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One method of one path, with its handler and its documentation.
pub(crate) struct Route {
    pub(crate) listener: Listener,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    pub(crate) responses: Vec<ResponseSpec>,
    pub(crate) problems: Vec<Code>,
    handler: MethodRouter<Arc<TicketService>>,
}

/// A parameter of a request.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `path`, `query` or `header`.
    pub(crate) location: &'static str,
    pub(crate) required: bool,
    pub(crate) description: &'static str,
    pub(crate) schema: SchemaOf,
}

/// A JSON body.
#[derive(Clone, Copy)]
pub(crate) struct Body {
    pub(crate) required: bool,
    pub(crate) schema: SchemaOf,
}

/// A successful response.
#[derive(Clone, Copy)]
pub(crate) struct ResponseSpec {
    pub(crate) status: u16,
    pub(crate) description: &'static str,
    /// The media type and, for JSON of the contract, its schema.
    pub(crate) content: Option<(&'static str, Option<SchemaOf>)>,
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// Returns the router of a listener, without its state.
pub(crate) fn router(listener: Listener) -> Router<Arc<TicketService>> {
    let served = routes().into_iter().filter(|route| route.listener == listener);
    served.fold(Router::new(), |router, route| router.route(route.path, route.handler))
}

impl Route {
    fn new<H, T>(
        (method, path): (&'static str, &'static str),
        (id, summary): (&'static str, &'static str),
        handler: H,
    ) -> Self
    where
        H: Handler<T, Arc<TicketService>>,
        T: 'static,
    {
        Self {
            listener: Listener::Public,
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

    fn internal(mut self) -> Self {
        self.listener = Listener::Internal;
        self
    }

    fn with_description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    fn with_parameters(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    fn with_body<T: JsonSchema>(mut self, required: bool) -> Self {
        self.body = Some(Body { required, schema: schema_of::<T> });
        self
    }

    fn with_response(mut self, response: ResponseSpec) -> Self {
        self.responses.push(response);
        self
    }

    fn with_problems(mut self, problems: impl IntoIterator<Item = Code>) -> Self {
        self.problems.extend(problems);
        self
    }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn filter(method: &str) -> MethodFilter {
    match method {
        "post" => MethodFilter::POST,
        "delete" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}
