//! The operations of the admin API. Router and OpenAPI document are built from this list. The
//! declarations look alike because they are data: each line differs in its values.

use std::sync::Arc;

use daegi_domain::{ItemId, LineState, OperatorName, Policy, UserId};
use daegi_runtime::Code;
use daegi_runtime::openapi::{Document, Group, Operation, Parameter, ResponseSpec, schema_of};
use daegi_simulation::{Forecast, Sale};
use schemars::json_schema;
use serde_json::{Value, json};

use super::access::{
    AccessPage, AddRules, ChangedRules, Checked, CheckedRequest, Contact, RemoveRules,
};
use super::audit::AuditPage;
use super::beacon::BeaconSignature;
use super::counts::TokenCounts;
use super::forecast::{Change, LineForecast};
use super::invitations::{Invitations, NewInvitations};
use super::items::Items;
use super::leader::LeaderView;
use super::lines::{LineDetail, LineHistory};
use super::minutes::LineMinutes;
use super::operators::{CreatedOperator, Me, NewOperator, Operators};
use super::overview::{self, Overview, Sort};
use super::period::Format;
use super::recovery::Declared;
use super::requests::{CreateItem, ReplaceItem, UpdateItem};
use super::settings::{Quota, Tick};
use super::view::ItemView;
use super::visitors::Visitors;
use super::{
    AdminState, access, audit, beacon, counts, forecast, invitations, items, leader, lines,
    minutes, operators, policy, recovery, settings, simulate, visitors,
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
const FROM: Parameter = Parameter {
    name: "from",
    description: "When the period begins, as RFC 3339. Default: a day before its end.",
    schema: |_| json_schema!({ "type": "string", "format": "date-time" }),
    ..SEARCH
};
const TO: Parameter =
    Parameter { name: "to", description: "When it ends, as RFC 3339. Default: now.", ..FROM };
const STEP: Parameter = Parameter {
    name: "step",
    description: "The length of a step in minutes. Default: the shortest with at most 1,500 steps.",
    schema: |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": 1440 }),
    ..SEARCH
};
const VISITOR_STEP: Parameter = Parameter {
    description: "The length of a step in minutes. Default: the shortest that is kept.",
    schema: |_| json_schema!({ "type": "integer", "enum": [1, 60] }),
    ..STEP
};
const FORMAT: Parameter = Parameter {
    name: "format",
    description: "The form of the response. Default: `json`.",
    schema: schema_of::<Format>,
    ..SEARCH
};

const RULE_SEARCH: Parameter = Parameter {
    description: "Only rules whose id, subject, item, reason or author contains this.",
    ..SEARCH
};
const RULE_LIMIT: Parameter = Parameter {
    name: "limit",
    description: "Maximum number of rules in the response.",
    schema: |_| {
        let (default, max) = access::LIMITS;
        json_schema!({ "type": "integer", "minimum": 0, "maximum": max, "default": default })
    },
    ..SEARCH
};
const EXPORTED_USER: Parameter = Parameter {
    name: "userId",
    description: "Only events of this user.",
    schema: schema_of::<UserId>,
    ..SEARCH
};

/// The path of the admin API that the paths below are relative to.
pub(super) const BASE: &str = "/internal/admin/v1";

/// Every operation, in the order of the docs page.
pub(super) fn groups() -> [Group<Arc<AdminState>>; 6] {
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
                line_forecast(),
                line_now(),
                line_history(),
                line_minutes(),
                line_visitors(),
            ],
        },
        Group {
            tag: "access",
            description: "The block and allow list. A change is in force on all pods within 2 s.",
            operations: vec![
                access_rules(),
                add_access(),
                remove_access(),
                check_access(),
                export_access(),
                set_contact(),
            ],
        },
        Group {
            tag: "fleet",
            description: "All lines and processes.",
            operations: vec![overview(), leader(), audit(), run_simulation(), declare_loss()],
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

fn line_forecast() -> AdminOperation {
    let id = ("forecast", "What a change of rate or capacity would do; changes nothing.");
    Operation::new(("post", "/waiting-item/{itemId}/forecast"), id, forecast::show)
        .with_parameters([ITEM])
        .with_body::<Change>(true)
        .with_response(ResponseSpec::json::<LineForecast>(200, "If no further ticket joins."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::ItemNotFound])
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

fn run_simulation() -> AdminOperation {
    let id = ("simulate", "Simulates a sale; changes nothing.");
    Operation::new(("post", "/simulate"), id, simulate::run)
        .with_description(
            "By the rules of lines, under a clock that does not wait: at most 50,000 arrivals and 10 s, one simulation at a time.",
        )
        .with_body::<Sale>(true)
        .with_example(simulate::sale_example())
        .with_response(ResponseSpec::json::<Forecast>(200, "What would happen."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::Conflict])
}

fn line_minutes() -> AdminOperation {
    let id = ("minutes", "The stored history of a line, minute by minute.");
    Operation::new(("get", "/waiting-item/{itemId}/minutes"), id, minutes::show)
        .with_description("Written once per minute by the leader, kept for `DAEGI_HISTORY_DAYS`, and the same from every replica. Dates and times of steps are multiples of the step since 1970, in UTC.")
        .with_parameters([ITEM, FROM, TO, STEP, FORMAT])
        .with_response(ResponseSpec::json::<LineMinutes>(200, "One list per figure, oldest first."))
        .with_response(ResponseSpec::media(200, "One list per figure, oldest first.", "text/csv"))
        .with_problems(ITEM_PROBLEMS)
}

fn line_visitors() -> AdminOperation {
    let id = ("visitors", "With which devices, from where and how users came.");
    Operation::new(("get", "/waiting-item/{itemId}/visitors"), id, visitors::show)
        .with_description("Counted at new tickets, by minute for 48 h and by hour for `DAEGI_HISTORY_DAYS`. Pods write their counts every 5 s. docs/PRIVACY.md says what is kept.")
        .with_parameters([ITEM, FROM, TO, VISITOR_STEP, FORMAT])
        .with_response(ResponseSpec::json::<Visitors>(200, "Counts, shares and percentiles."))
        .with_response(ResponseSpec::media(200, "Counts, shares and percentiles.", "text/csv"))
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

fn access_rules() -> AdminOperation {
    let id = ("accessRules", "The rules, newest first.");
    Operation::new(("get", "/access"), id, access::list)
        .with_parameters([RULE_SEARCH, OFFSET, RULE_LIMIT])
        .with_response(ResponseSpec::json::<AccessPage>(200, "One page of the list."))
        .with_problems([Code::InvalidRequest])
}

fn add_access() -> AdminOperation {
    let id = ("addAccessRules", "Adds rules, or replaces those that match the same.");
    change(("post", "/access"), id, access::add)
        .with_description("Tickets and entries of blocked users end when their user sends the next request. An allow rule wins over every block rule.")
        .with_body::<AddRules>(true)
        .with_response(ResponseSpec::json::<ChangedRules>(200, "What changed."))
        .with_problems(BODY_PROBLEMS)
        .with_problems([Code::Conflict])
}

fn remove_access() -> AdminOperation {
    let id = ("removeAccessRules", "Removes rules by id; unknown ids are ignored.");
    change(("post", "/access/remove"), id, access::remove)
        .with_description(
            "A rule of the file of `DAEGI_BLOCKLIST` comes back within seconds: remove it there.",
        )
        .with_body::<RemoveRules>(true)
        .with_response(ResponseSpec::json::<ChangedRules>(200, "What changed."))
        .with_problems(BODY_PROBLEMS)
}

fn check_access() -> AdminOperation {
    let id = ("checkAccess", "What the list says about a request, and by which rules.");
    Operation::new(("post", "/access/check"), id, access::check)
        .with_body::<CheckedRequest>(true)
        .with_response(ResponseSpec::json::<Checked>(200, "The decision now."))
        .with_problems(BODY_PROBLEMS)
}

fn export_access() -> AdminOperation {
    let id = ("exportAccess", "Who was blocked when, why and by which rule, as CSV.");
    Operation::new(("get", "/access/export"), id, access::export)
        .with_description("Changes of rules, tickets that ended, and refused joins: the latest 10,000 of each, newest first. Of refused joins a pod records at most 20 per second, and one per user, rule and hour.")
        .with_parameters([EXPORTED_USER])
        .with_response(ResponseSpec::media(200, "The events.", "text/csv"))
        .with_problems([Code::InvalidRequest])
}

fn set_contact() -> AdminOperation {
    let id = ("setContact", "Sets where blocked users can complain.");
    change(("put", "/access/contact"), id, access::set_contact)
        .with_body::<Contact>(true)
        .with_response(ResponseSpec::json::<Contact>(200, "The address that applies now."))
        .with_problems(BODY_PROBLEMS)
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
