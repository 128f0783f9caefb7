//! The operations of the admin API. Router and OpenAPI document are built from this list. The
//! declarations look alike because they are data: each line differs in its values.

use std::sync::Arc;

use daegi_domain::{ItemId, LineState, OperatorName, Policy};
use daegi_runtime::Code;
use daegi_runtime::openapi::{Document, Group, Operation, Parameter, ResponseSpec, schema_of};
use schemars::json_schema;
use serde_json::{Value, json};

use super::audit::AuditPage;
use super::beacon::BeaconSignature;
use super::counts::TokenCounts;
use super::invitations::{Invitations, NewInvitations};
use super::items::Items;
use super::leader::LeaderView;
use super::lines::{LineDetail, LineHistory};
use super::operators::{CreatedOperator, Me, NewOperator, Operators};
use super::overview::{self, Overview, Sort};
use super::recovery::Declared;
use super::requests::{CreateItem, ReplaceItem, UpdateItem};
use super::settings::{Quota, Tick};
use super::view::ItemView;
use super::{
    AdminState, audit, beacon, counts, invitations, items, leader, lines, operators, policy,
    recovery, settings,
};

type AdminOperation = Operation<Arc<AdminState>>;

const ITEM: Parameter = Parameter {
    name: "itemId",
    location: "path",
    required: true,
    description: "The item.",
    schema: |_| json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9._~-]{1,64}$" }),
};
const OPERATOR: Parameter = Parameter {
    name: "X-Operator",
    location: "header",
    required: false,
    description: "The name of the operator, for the audit log; percent-encoded where it is not ASCII. It is cut after 64 characters.",
    schema: schema_of::<String>,
};
const OPERATOR_NAME: Parameter = Parameter {
    name: "name",
    location: "path",
    required: true,
    description: "The name of an operator.",
    schema: schema_of::<OperatorName>,
};
const QUOTA: Parameter = Parameter {
    name: "tokenCountToMove",
    location: "query",
    required: false,
    description: "Instead of the body.",
    schema: |_| json_schema!({ "type": "integer", "minimum": 0 }),
};
const COUNTED_ITEM: Parameter = Parameter {
    name: "itemId",
    location: "query",
    required: false,
    description: "Repeated: only these items, in this order.",
    schema: schema_of::<ItemId>,
};
const AUDITED_ITEM: Parameter =
    Parameter { description: "Only changes of this item.", ..COUNTED_ITEM };
const AUDIT_LIMIT: Parameter = Parameter {
    name: "limit",
    location: "query",
    required: false,
    description: "Maximum number of entries in the response.",
    schema: |_| {
        json_schema!({
            "type": "integer", "minimum": 0, "maximum": u32::MAX, "default": audit::DEFAULT_LIMIT
        })
    },
};
const SEARCH: Parameter = Parameter {
    name: "search",
    location: "query",
    required: false,
    description: "Only lines whose id or name contains this.",
    schema: schema_of::<String>,
};
const STATE: Parameter = Parameter {
    name: "state",
    description: "Only lines in this state.",
    schema: schema_of::<LineState>,
    ..SEARCH
};
const SORT: Parameter = Parameter {
    name: "sort",
    description: "The order of the lines.",
    schema: schema_of::<Sort>,
    ..SEARCH
};
const OFFSET: Parameter = Parameter {
    name: "offset",
    description: "Lines to skip.",
    schema: |_| json_schema!({ "type": "integer", "minimum": 0 }),
    ..SEARCH
};
const LINE_LIMIT: Parameter = Parameter {
    name: "limit",
    description: "Maximum number of lines in the response.",
    schema: |_| {
        let (default, max) = overview::LIMITS;
        json_schema!({ "type": "integer", "minimum": 0, "maximum": max, "default": default })
    },
    ..SEARCH
};

/// The path of the admin API that the paths below are relative to.
pub(super) const BASE: &str = "/internal/admin/v1";

/// Every operation, in the order of the docs page.
pub(super) fn groups() -> [Group<Arc<AdminState>>; 5] {
    [
        Group {
            tag: "settings",
            description: "Rules of all lines, and how many tickets they hold.",
            operations: vec![quota(), set_quota(), tick(), set_tick(), token_count()],
        },
        Group {
            tag: "items",
            description: "What users wait for, with the policy of its line.",
            operations: vec![
                list(),
                create(),
                one(),
                replace(),
                remove(),
                manually(),
                set_policy(),
                create_invitations(),
            ],
        },
        Group {
            tag: "lines",
            description: "Control and figures of one line.",
            operations: vec![
                open(),
                put_beacon(),
                pause(),
                resume(),
                reset(),
                line_now(),
                line_history(),
            ],
        },
        Group {
            tag: "fleet",
            description: "All lines and processes.",
            operations: vec![overview(), leader(), audit(), declare_loss()],
        },
        Group {
            tag: "operators",
            description: "Who may call this API, and with which role.",
            operations: vec![me(), list_operators(), create_operator(), remove_operator()],
        },
    ]
}

/// Generates the OpenAPI document.
pub(super) fn document() -> Value {
    let document = Document {
        info: json!({
            "title": "daegi, for operators",
            "version": "1",
            "description": "Served by every scheduler, leader or not. Changes are in force for all replicas. Every call needs the admin token or the token of an operator as `Authorization: Bearer`. Reads need the role viewer, changes the role operator, and calls that say so the role admin.",
        }),
        base: BASE,
        security: json!([{ "adminToken": [] }]),
        security_schemes: json!({ "adminToken": { "type": "http", "scheme": "bearer" } }),
        problems: vec![Code::Unauthorized, Code::Forbidden, Code::Unavailable],
        has_default_problem: true,
        ..Document::default()
    };
    document.generate(&groups())
}

fn quota() -> AdminOperation {
    let id = ("quota", "Admissions per tick and line.");
    Operation::new(("get", "/waiting-queue/token-count-to-move"), id, settings::quota)
        .with_response(ResponseSpec::json::<Quota>(200, "The quota."))
}

fn set_quota() -> AdminOperation {
    let id = ("setQuota", "Sets the quota; 0 pauses all lines. Needs the role admin.");
    change(("put", "/waiting-queue/token-count-to-move"), id, settings::set_quota)
        .with_description("In the body, in the query, or in both if they agree.")
        .with_parameters([QUOTA])
        .with_body::<Quota>(false)
        .with_response(ResponseSpec::json::<Quota>(200, "The quota that applies now."))
        .with_problems(BODY_PROBLEMS)
}

fn tick() -> AdminOperation {
    Operation::new(("get", "/waiting-queue/tick-ms"), ("tick", "Length of a tick."), settings::tick)
        .with_response(ResponseSpec::json::<Tick>(200, "The length."))
}

fn set_tick() -> AdminOperation {
    let id = ("setTick", "Sets the length of a tick. Needs the role admin.");
    change(("put", "/waiting-queue/tick-ms"), id, settings::set_tick)
        .with_body::<Tick>(true)
        .with_response(ResponseSpec::json::<Tick>(200, "The length that applies now."))
        .with_problems(BODY_PROBLEMS)
}

fn token_count() -> AdminOperation {
    let id = ("tokenCount", "Numbers of waiting tickets and entries.");
    Operation::new(("get", "/waiting-queue/token-count"), id, counts::show)
        .with_parameters([COUNTED_ITEM])
        .with_response(ResponseSpec::json::<TokenCounts>(200, "The counts."))
        .with_problems([Code::InvalidRequest])
}

fn list() -> AdminOperation {
    Operation::new(("get", "/waiting-item"), ("items", "All items."), items::list)
        .with_response(ResponseSpec::json::<Items>(200, "Sorted by id."))
}

fn create() -> AdminOperation {
    let id = ("createItem", "Creates an item that does not exist.");
    change(("post", "/waiting-item"), id, items::create)
        .with_body::<CreateItem>(true)
        .with_response(item_response(201, "The item."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::Conflict])
}

fn one() -> AdminOperation {
    Operation::new(("get", "/waiting-item/{itemId}"), ("item", "One item."), items::one)
        .with_parameters([ITEM])
        .with_response(item_response(200, "The item."))
        .with_problems(ITEM_PROBLEMS)
}

fn replace() -> AdminOperation {
    let id = ("replaceItem", "Creates an item or replaces it completely.");
    change(("put", "/waiting-item/{itemId}"), id, items::replace)
        .with_parameters([ITEM])
        .with_body::<ReplaceItem>(true)
        .with_response(item_response(200, "The item; 201 if it is new."))
        .with_response(item_response(201, "The item, which did not exist before."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::Conflict])
}

fn remove() -> AdminOperation {
    let id = ("removeItem", "Removes an item and ends its line. Needs the role admin.");
    change(("delete", "/waiting-item/{itemId}"), id, items::remove)
        .with_parameters([ITEM])
        .with_response(ResponseSpec::empty(204, "Removed."))
        .with_problems(ITEM_PROBLEMS)
}

fn manually() -> AdminOperation {
    let id = ("updateItem", "Does what a product event does; keeps the policy.");
    change(("post", "/waiting-item/{itemId}/manually"), id, items::manually)
        .with_parameters([ITEM])
        .with_body::<UpdateItem>(true)
        .with_response(item_response(200, "The item."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::Conflict])
}

fn set_policy() -> AdminOperation {
    let id = ("setPolicy", "Changes the named rules; null restores the default (RFC 7396).");
    change(("patch", "/waiting-item/{itemId}/policy"), id, policy::patch)
        .with_parameters([ITEM])
        .with_body::<Policy>(true)
        .with_example(json!({ "maxActive": 200, "passTtlSeconds": 300 }))
        .with_response(item_response(200, "The item."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::ItemNotFound, Code::Conflict])
}

fn create_invitations() -> AdminOperation {
    let id = ("createInvitations", "Makes invitation codes for a lane.");
    change(("post", "/waiting-item/{itemId}/invitations"), id, invitations::create)
        .with_description(
            "Codes are signed and not stored: the response is the only place that has them.",
        )
        .with_parameters([ITEM])
        .with_body::<NewInvitations>(true)
        .with_response(ResponseSpec::json::<Invitations>(200, "The codes."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::ItemNotFound, Code::Conflict])
}

fn pause() -> AdminOperation {
    let id = ("pause", "Stops admission.");
    line_change(("post", "/waiting-item/{itemId}/pause"), id, items::pause)
}

fn open() -> AdminOperation {
    let id = ("open", "Opens a planned line now; the leader opens it with its next tick.");
    line_change(("post", "/waiting-item/{itemId}/open"), id, policy::open)
        .with_problems([Code::Conflict])
}

fn put_beacon() -> AdminOperation {
    let id = ("putBeacon", "Hands in the signature of the round for which a draw waits.");
    change(("put", "/waiting-item/{itemId}/opening/beacon"), id, beacon::put)
        .with_description(
            "Verified with the public key of drand's quicknet. The leader opens the line with its next tick.",
        )
        .with_parameters([ITEM])
        .with_body::<BeaconSignature>(true)
        .with_response(item_response(200, "The item."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::ItemNotFound, Code::Conflict])
}

fn resume() -> AdminOperation {
    let id = ("resume", "Continues admission.");
    line_change(("post", "/waiting-item/{itemId}/resume"), id, items::resume)
}

fn reset() -> AdminOperation {
    let id = ("reset", "Ends all waiting tickets and restarts the line. Needs the role admin.");
    line_change(("post", "/waiting-item/{itemId}/reset"), id, items::reset)
}

fn line_now() -> AdminOperation {
    let id = ("line", "The current figures of a line.");
    Operation::new(("get", "/waiting-item/{itemId}/line"), id, lines::now)
        .with_parameters([ITEM])
        .with_response(ResponseSpec::json::<LineDetail>(200, "The figures."))
        .with_problems(ITEM_PROBLEMS)
}

fn line_history() -> AdminOperation {
    let id = ("history", "A line over the last half hour, as far as this replica has samples.");
    let description = "One list per figure, oldest first; `at` in unix milliseconds.";
    Operation::new(("get", "/waiting-item/{itemId}/history"), id, lines::history)
        .with_parameters([ITEM])
        .with_response(ResponseSpec::json::<LineHistory>(200, description))
        .with_problems(ITEM_PROBLEMS)
}

fn declare_loss() -> AdminOperation {
    let id = ("declareLoss", "Declares that the store lost data. Needs the role admin.");
    change(("post", "/recovery/declare-loss"), id, recovery::declare_loss)
        .with_description("For 50 minutes, users who present a ticket of an earlier generation get their number back.")
        .with_response(ResponseSpec::json::<Declared>(200, "Declared in every partition."))
}

fn leader() -> AdminOperation {
    Operation::new(("get", "/leader"), ("leader", "The leader, and this replica."), leader::show)
        .with_response(ResponseSpec::json::<LeaderView>(200, "As this replica sees it."))
}

fn overview() -> AdminOperation {
    let id = ("overview", "All lines, processes and the latest events.");
    Operation::new(("get", "/overview"), id, overview::show)
        .with_parameters([SEARCH, STATE, SORT, OFFSET, LINE_LIMIT])
        .with_response(ResponseSpec::json::<Overview>(200, "One page of lines, and totals of all."))
        .with_problems([Code::InvalidRequest])
}

fn audit() -> AdminOperation {
    let id = ("audit", "The latest thousand changes by operators, newest first.");
    Operation::new(("get", "/audit"), id, audit::show)
        .with_parameters([AUDITED_ITEM, AUDIT_LIMIT])
        .with_response(ResponseSpec::json::<AuditPage>(200, "The audit log."))
        .with_problems([Code::InvalidRequest])
}

fn me() -> AdminOperation {
    Operation::new(("get", "/me"), ("me", "The caller: name, role and items."), operators::me)
        .with_response(ResponseSpec::json::<Me>(200, "As the token proves."))
}

fn list_operators() -> AdminOperation {
    let id = ("operators", "All operators. Needs the role admin.");
    Operation::new(("get", "/operators"), id, operators::list).with_response(ResponseSpec::json::<
        Operators,
    >(
        200,
        "Sorted by name, without tokens.",
    ))
}

fn create_operator() -> AdminOperation {
    let id = ("createOperator", "Creates an operator with a token. Needs the role admin.");
    change(("post", "/operators"), id, operators::create)
        .with_description(
            "The store keeps a hash of the token: the response is the only place that has it.",
        )
        .with_body::<NewOperator>(true)
        .with_response(ResponseSpec::json::<CreatedOperator>(201, "The operator and the token."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::Conflict])
}

fn remove_operator() -> AdminOperation {
    let id = (
        "removeOperator",
        "Removes an operator, whose token is refused within 2 s. Needs the role admin.",
    );
    change(("delete", "/operators/{name}"), id, operators::remove)
        .with_parameters([OPERATOR_NAME])
        .with_response(ResponseSpec::empty(204, "Removed."))
        .with_problems([Code::NotFound])
}

const ITEM_PROBLEMS: [Code; 2] = [Code::InvalidRequest, Code::ItemNotFound];
const BODY_PROBLEMS: [Code; 3] =
    [Code::InvalidRequest, Code::PayloadTooLarge, Code::UnsupportedMediaType];

/// An operation that changes state. Its request may name the operator, for the audit log.
fn change<H, T>(
    route: (&'static str, &'static str),
    id: (&'static str, &'static str),
    handler: H,
) -> AdminOperation
where
    H: axum::handler::Handler<T, Arc<AdminState>>,
    T: 'static,
{
    Operation::new(route, id, handler).with_parameters([OPERATOR])
}

/// A change of a line, which has no body and returns the item.
fn line_change<H, T>(
    route: (&'static str, &'static str),
    id: (&'static str, &'static str),
    handler: H,
) -> AdminOperation
where
    H: axum::handler::Handler<T, Arc<AdminState>>,
    T: 'static,
{
    change(route, id, handler)
        .with_parameters([ITEM])
        .with_response(item_response(200, "The item."))
        .with_problems(ITEM_PROBLEMS)
}

fn item_response(status: u16, description: &'static str) -> ResponseSpec {
    ResponseSpec::json::<ItemView>(status, description)
}
