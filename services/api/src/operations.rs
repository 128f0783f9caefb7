//! The table of routes. The router, the OpenAPI document and the docs page are all made from it,
//! so that a route that is served and not documented, or the other way round, cannot exist.

mod table;

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use daegi_runtime::Code;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::room::Room;

pub(crate) use table::operations;

/// Where a route is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    Public,
    Internal,
}

/// How to write a type into the document.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One method of one route, with everything there is to say about it.
pub(crate) struct Operation {
    pub(crate) listener: Listener,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) about: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) problems: Vec<Code>,
    handler: MethodRouter<Arc<Room>>,
}

/// Something a request carries beside its body.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `path`, `query` or `header`.
    pub(crate) place: &'static str,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
    pub(crate) schema: SchemaOf,
}

/// A JSON body.
#[derive(Clone, Copy)]
pub(crate) struct Body {
    pub(crate) required: bool,
    pub(crate) schema: SchemaOf,
}

/// An answer that is no problem.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) about: &'static str,
    /// The media type and, for JSON of the contract, its schema.
    pub(crate) content: Option<(&'static str, Option<SchemaOf>)>,
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// The router of a listener, before it knows its room.
pub(crate) fn router(listener: Listener) -> Router<Arc<Room>> {
    let served = operations().into_iter().filter(|operation| operation.listener == listener);
    served.fold(Router::new(), |router, operation| router.route(operation.path, operation.handler))
}

impl Operation {
    fn new<H, T>(
        (method, path): (&'static str, &'static str),
        (id, summary): (&'static str, &'static str),
        handler: H,
    ) -> Self
    where
        H: Handler<T, Arc<Room>>,
        T: 'static,
    {
        Self {
            listener: Listener::Public,
            method,
            path,
            id,
            summary,
            about: "",
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            problems: Vec::new(),
            handler: on(filter(method), handler),
        }
    }

    fn internal(mut self) -> Self {
        self.listener = Listener::Internal;
        self
    }

    fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    fn with(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    fn takes<T: JsonSchema>(mut self, required: bool) -> Self {
        self.body = Some(Body { required, schema: schema_of::<T> });
        self
    }

    fn answers(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    fn fails(mut self, problems: impl IntoIterator<Item = Code>) -> Self {
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
