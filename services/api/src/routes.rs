//! The operations of the api. Routers, OpenAPI document and docs page are built from these lists, so that
//! a route cannot be served without being documented, or the other way round. The declarations look
//! alike because they are data: each line differs in its values.

use std::sync::Arc;

use daegi_domain::draw::DrawRecord;
use daegi_domain::{ItemId, Language, UserId};
use daegi_runtime::Code;
use daegi_runtime::openapi::{
    self, Document, Group, Operation, Parameter, ResponseSpec, SchemaOf, schema_of,
};
use schemars::json_schema;
use serde_json::{Value, json};

use crate::endpoints::draw as draw_endpoint;
use crate::endpoints::{docs, entry, gate, handover, streams, tickets, waiting_page};
use crate::tickets::TicketService;
use crate::wire::{
    Completed, Handover, HandoverUse, Join, Line, OriginHealth, PageTexts, TakeOver, Ticket,
    TokenOrPass, Verdict, Wait,
};

type ApiOperation = Operation<Arc<TicketService>>;
type ApiGroup = Group<Arc<TicketService>>;

const LINE: &str = "/api/v1/item/{itemId}/waiting-queue";
const TICKET: &str = "/api/v1/item/{itemId}/waiting-queue/{token}";
const EVENTS: &str = "/api/v1/item/{itemId}/waiting-queue/{token}/events";
const SOCKET: &str = "/api/v1/item/{itemId}/waiting-queue/{token}/ws";
const HANDOVER: &str = "/api/v1/item/{itemId}/waiting-queue/{token}/handover";
const TAKE_OVER: &str = "/api/v1/item/{itemId}/waiting-queue/handover";
const DRAW: &str = "/api/v1/item/{itemId}/waiting-queue/draw";
const WAIT_PAGE: &str = "/wait/{itemId}";
const VERIFY: &str = "/internal/v1/item/{itemId}/entry/verify";
const COMPLETE: &str = "/internal/v1/item/{itemId}/entry/complete";
const ORIGIN_HEALTH: &str = "/internal/v1/item/{itemId}/origin-health";

const GATE: &str = "/gate/{itemId}";
/// For proxies that append the path of the request, as Envoy does. OpenAPI cannot describe it.
pub(crate) const GATE_APPENDED: &str = "/gate/{itemId}/{*path}";

const ITEM: Parameter = Parameter {
    name: "itemId",
    location: "path",
    required: true,
    description: "The item.",
    schema: schema_of::<ItemId>,
};
const TOKEN: Parameter = Parameter {
    name: "token",
    location: "path",
    required: true,
    description: "The ticket's token, or `me`: then it is taken from `Authorization: Bearer <token>`.",
    schema: schema_of::<String>,
};
const USER: Parameter = Parameter {
    name: "user-id",
    location: "header",
    required: false,
    description: "The user. A join needs it here or in the body; with a token it must equal the token's user.",
    schema: schema_of::<UserId>,
};
const CODE: Parameter = Parameter {
    name: "daegi-code",
    location: "header",
    required: false,
    description: "An invitation code of a lane. The user joins that lane, and moves there from another one.",
    schema: |_| json_schema!({ "type": "string", "maxLength": 128 }),
};
const CHALLENGE: Parameter = Parameter {
    name: "daegi-challenge",
    location: "header",
    required: false,
    description: "The solution of the challenge of a `CHALLENGE_REQUIRED` problem, as `<challenge>:<nonce>`, or `<challenge>:<response>` for a widget.",
    schema: |_| json_schema!({ "type": "string", "maxLength": 4096 }),
};
const PAGE_MARK: Parameter = Parameter {
    name: "daegi-page",
    location: "header",
    required: false,
    description: "The revision of the waiting page that joins. A join without it is shown to operators as one without the page, and is not refused.",
    schema: |_| json_schema!({ "type": "string", "maxLength": 128 }),
};
const IDENTITY: Parameter = Parameter {
    name: "daegi-identity",
    location: "header",
    required: false,
    description: "A signed identity (JWT) of the user, required with `DAEGI_IDENTITY=jwt`. The user is the one that it proves; `user-id` may be omitted and must not differ.",
    schema: |_| json_schema!({ "type": "string", "maxLength": 8192 }),
};
const WAIT: Parameter = Parameter {
    name: "waitMs",
    location: "query",
    required: false,
    description: "How long the response may be delayed until status, position or line state change. It is sent earlier if the pod has too many long polls or a newer connection of the ticket replaces this one.",
    schema: |_| json_schema!({ "type": "integer", "minimum": 0, "maximum": Wait::MAX_MS, "default": 0 }),
};
const DRAW_TOKEN: Parameter = Parameter {
    name: "token",
    location: "query",
    required: false,
    description: "The token of a ticket, for the proof that it took part.",
    schema: schema_of::<String>,
};
const LAST_EVENT: Parameter = Parameter {
    name: "Last-Event-ID",
    location: "header",
    required: false,
    description: "The id of the last received event, which is not sent again.",
    schema: schema_of::<String>,
};

const PAGE: Parameter = Parameter {
    name: "page",
    location: "query",
    required: false,
    description: "The `revision` of the waiting page's texts that the client shows. The stream sends an event named `page` with the JSON of `/wait/{itemId}/page.json` whenever the texts differ. Without it no such event is sent.",
    schema: schema_of::<String>,
};

const LANGUAGE: Parameter = Parameter {
    name: "language",
    location: "path",
    required: true,
    description: "The tag of a page language.",
    schema: |_| {
        let tags: Vec<&str> = Language::ALL.iter().map(|language| language.tag()).collect();
        json_schema!({ "type": "string", "enum": tags })
    },
};

const RETRY_AFTER: &[(&str, &str)] =
    &[("Retry-After", "Seconds until the next poll; only while waiting.")];
const ANY_TICKET: [Code; 8] = [
    Code::InvalidRequest,
    Code::InvalidToken,
    Code::TokenMismatch,
    Code::Blocked,
    Code::ItemNotFound,
    Code::LineRestarted,
    Code::RateLimited,
    Code::Unavailable,
];

/// Returns the operations of the public listener, in the order of the docs page.
pub(crate) fn public() -> ApiGroup {
    let clients = [join(), poll(), events(), socket(), leave(), line(), draw()];
    let page = [wait_page(), wait_join(), wait_look(), wait_texts(), wait_script()];
    let page = page.into_iter().chain([widget_script(), wait_style()]);
    let devices = [issue_handover(), used_handover(), take_over()];
    let more = [wait_more_script(), wait_more_style(), wait_more_texts(), root()];
    let reading = [jwks(), specification(), docs(), style()];
    let operations =
        clients.into_iter().chain(devices).chain(page).chain(more).chain(reading).collect();
    Group { tag: "public", description: "For clients.", operations }
}

/// Returns the operations of the internal listener.
pub(crate) fn internal() -> ApiGroup {
    let description = "For services, on the internal listener only.";
    Group {
        tag: "internal",
        description,
        operations: vec![verify(), complete(), origin_health(), gate()],
    }
}

/// Returns the OpenAPI document of both listeners.
#[must_use]
pub fn document() -> Value {
    let ticket = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "The ticket's token, if the path has `me` instead.",
    });
    let document = Document {
        info: json!({
            "title": "daegi",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A virtual waiting room.",
            "description": "Users join the line of an item, see their exact position, and are admitted in order. Errors are RFC 9457 problems with a stable `code`.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        }),
        security_schemes: json!({ "ticket": ticket }),
        optional_security: Some(("token", "ticket")),
        ..Document::default()
    };
    document.generate(&[public(), internal()])
}

fn join() -> ApiOperation {
    Operation::new(("post", LINE), ("join", "Join the line"), tickets::join)
        .with_description("Creates a ticket at the end of the line, or returns the one the user has: joining again returns the same token and position. A user who sends their token as `Authorization: Bearer` keeps its position even if the store lost it. At a line whose policy has `challenge: pow` or `widget`, a join without such a token or an invitation code needs a solved challenge: the problem `CHALLENGE_REQUIRED` contains it, and docs/API.md says how to solve it.")
        .with_parameters([ITEM, USER, IDENTITY, CODE, CHALLENGE, PAGE_MARK])
        .with_body::<Join>(false)
        .with_response(ticket(201, "A new ticket."))
        .with_response(ticket(200, "The user's existing ticket."))
        .with_problems([Code::InvalidRequest, Code::ItemNotFound, Code::SoldOut, Code::QueueDisabled])
        .with_problems([Code::NotOpenYet, Code::LineClosed])
        .with_problems([Code::InvalidCode, Code::ChallengeRequired, Code::Blocked])
        .with_problems([Code::InvalidIdentity, Code::TokenMismatch])
        .with_problems([Code::PayloadTooLarge, Code::UnsupportedMediaType, Code::LineFull])
        .with_problems([Code::RateLimited, Code::Unavailable, Code::StoreFull])
}

fn poll() -> ApiOperation {
    Operation::new(("get", TICKET), ("poll", "Poll a ticket"), tickets::poll)
        .with_description("Poll again after `pollAfterMs`, or delay the response with `waitMs`. A poll also marks the user as present, and after a data loss it restores the ticket at its position: until then the response may be 503, and the line is `RECOVERING`.")
        .with_parameters([ITEM, TOKEN, WAIT, USER])
        .with_response(ticket(200, "The ticket as it is now."))
        .with_problems(ANY_TICKET)
}

fn events() -> ApiOperation {
    Operation::new(("get", EVENTS), ("events", "Follow a ticket as server-sent events"), streams::events)
        .with_description("Events named `ticket` whose data is the JSON of a poll: the first immediately, then on every change. A comment is sent every 15 s. The stream ends after a final status, or with `retry` when the pod restarts: reconnect then, the position is kept. A stream that cannot continue ends with an event named `problem`, whose data is the problem that a poll would return (`LINE_RESTARTED`, `ITEM_NOT_FOUND`), or `RATE_LIMITED` when a newer connection of the same ticket replaced this one: poll then.")
        .with_parameters([ITEM, TOKEN, LAST_EVENT, PAGE, USER])
        .with_response(ResponseSpec::media(200, "The stream.", "text/event-stream"))
        .with_problems(ANY_TICKET)
}

fn socket() -> ApiOperation {
    Operation::new(("get", SOCKET), ("socket", "Follow a ticket over a WebSocket"), streams::socket)
        .with_description("Text messages with the JSON of a poll: the first immediately, then on every change. The server closes with 1000 after a final status, with 1012 and the reason `retry=<ms>` when the pod restarts, and with 1008 and the code of a problem when the stream cannot continue, or `RATE_LIMITED` when a newer connection of the same ticket replaced this one: poll then.")
        .with_parameters([ITEM, TOKEN, USER])
        .with_response(ResponseSpec::empty(101, "The socket."))
        .with_problems(ANY_TICKET)
}

fn leave() -> ApiOperation {
    Operation::new(("delete", TICKET), ("leave", "Leave the line"), tickets::leave)
        .with_description("Ends the ticket or the entry. Idempotent.")
        .with_parameters([ITEM, TOKEN, USER])
        .with_response(ResponseSpec::empty(204, "Left."))
        .with_problems([
            Code::InvalidRequest,
            Code::InvalidToken,
            Code::TokenMismatch,
            Code::RateLimited,
            Code::Unavailable,
        ])
}

fn line() -> ApiOperation {
    Operation::new(("get", LINE), ("line", "Get a line"), tickets::line)
        .with_parameters([ITEM])
        .with_response(ResponseSpec::json::<Line>(200, "The line."))
        .with_problems([Code::InvalidRequest, Code::ItemNotFound])
        .with_problems([Code::RateLimited, Code::Unavailable])
}

fn draw() -> ApiOperation {
    Operation::new(("get", DRAW), ("draw", "Get the record of a draw"), draw_endpoint::draw)
        .with_description("Everything that is needed to recompute the draw of a line whose opening has the order `draw`. Before the opening only the commitment is public. With the token of a ticket, as `token` or as `Authorization: Bearer`, the record contains the proof that the ticket took part, and its rank. docs/DRAW.md specifies the computation.")
        .with_parameters([ITEM, DRAW_TOKEN])
        .with_response(ResponseSpec::json::<DrawRecord>(200, "The record."))
        .with_problems([Code::InvalidRequest, Code::InvalidToken, Code::TokenMismatch])
        .with_problems([Code::ItemNotFound, Code::NoDraw, Code::LineRestarted])
        .with_problems([Code::RateLimited, Code::Unavailable])
}

fn issue_handover() -> ApiOperation {
    let named = ("issueHandover", "Get a code for another device");
    Operation::new(("post", HANDOVER), named, handover::issue)
        .with_description("A code with which another device of the user gets the token of this ticket. It works once, for two minutes. Until then it is as secret as the token.")
        .with_parameters([ITEM, TOKEN, USER])
        .with_response(ResponseSpec::json::<Handover>(200, "The code."))
        .with_problems([Code::InvalidRequest, Code::InvalidToken, Code::TokenMismatch])
        .with_problems([Code::RateLimited])
}

fn used_handover() -> ApiOperation {
    let named = ("usedHandover", "Whether a code for another device was used");
    Operation::new(("get", HANDOVER), named, handover::used)
        .with_description("For the device that shows the code.")
        .with_parameters([ITEM, TOKEN, USER])
        .with_response(ResponseSpec::json::<HandoverUse>(200, "Which codes were used."))
        .with_problems([Code::InvalidRequest, Code::InvalidToken, Code::TokenMismatch])
        .with_problems([Code::RateLimited, Code::Unavailable])
}

fn take_over() -> ApiOperation {
    let named = ("takeOver", "Continue on this device");
    Operation::new(("post", TAKE_OVER), named, handover::take)
        .with_description("Uses a code of another device: returns its ticket with the token. Both devices can then continue. A code that was used, has expired or is not of this item is refused with `INVALID_CODE`.")
        .with_parameters([ITEM])
        .with_body::<TakeOver>(true)
        .with_response(ticket(200, "The ticket."))
        .with_problems([Code::InvalidRequest, Code::InvalidCode, Code::InvalidToken])
        .with_problems([Code::TokenMismatch, Code::ItemNotFound, Code::LineRestarted])
        .with_problems([Code::PayloadTooLarge, Code::UnsupportedMediaType])
        .with_problems([Code::RateLimited, Code::Unavailable])
}

fn verify() -> ApiOperation {
    Operation::new(("post", VERIFY), ("verify", "Check an entry"), entry::verify)
        .with_description("Whether a token or a pass belongs to a live entry. A pass can be verified offline against the published keys; this call also detects entries that have ended.")
        .with_parameters([ITEM])
        .with_body::<TokenOrPass>(true)
        .with_response(ResponseSpec::json::<Verdict>(200, "The verdict."))
        .with_problems([Code::InvalidRequest, Code::PayloadTooLarge])
        .with_problems([Code::UnsupportedMediaType, Code::Unavailable])
}

fn complete() -> ApiOperation {
    Operation::new(("post", COMPLETE), ("complete", "Complete an entry"), entry::complete)
        .with_description("The order was placed: ends the entry of a token or a pass, so that the next user can be admitted. The entry of an expired pass has already ended: nothing is released.")
        .with_parameters([ITEM])
        .with_body::<TokenOrPass>(true)
        .with_response(ResponseSpec::json::<Completed>(200, "Whether this call ended it."))
        .with_problems([Code::InvalidRequest, Code::InvalidToken, Code::TokenMismatch])
        .with_problems([Code::PayloadTooLarge, Code::UnsupportedMediaType, Code::Unavailable])
}

fn origin_health() -> ApiOperation {
    let name = ("originHealth", "Report the health of an origin");
    Operation::new(("post", ORIGIN_HEALTH), name, entry::origin_health)
        .with_description("What a guard or gateway saw of the service behind the line since its last report: requests, errors and response times. Send one every second or two. The rate of a line with an adaptive pace follows these reports; of other lines they are stored for a minute and not used.")
        .with_parameters([ITEM])
        .with_body::<OriginHealth>(true)
        .with_response(ResponseSpec::empty(204, "Added."))
        .with_problems([Code::InvalidRequest, Code::ItemNotFound, Code::RateLimited])
        .with_problems([Code::PayloadTooLarge, Code::UnsupportedMediaType, Code::Unavailable])
}

fn gate() -> ApiOperation {
    let description = "For subrequests of proxies (docs/GATE.md), with any method. Reads the pass as the guards do: from the cookie, the header `daegi-pass`, `Authorization: Bearer`, or the query of the original address, from which it moves the pass into a cookie. A proxy may append the path and query of the request to the address instead of sending them in a header. Answers from memory: an entry that was completed keeps its pass until the pass expires.";
    let deny = Parameter {
        name: "deny",
        location: "query",
        required: false,
        description: "With `401`, every refusal and redirect has status 401, and the address of the redirect is in the header `daegi-location`: for nginx.",
        schema: |_| json_schema!({ "type": "string", "enum": ["401"] }),
    };
    let original = |name: &'static str| Parameter {
        name,
        location: "header",
        required: false,
        description: "The path and query of the original request.",
        schema: schema_of::<String>,
    };
    let operation = Operation::for_any_method(GATE, ("gate", "May this request pass?"), gate::gate);
    gate_responses(operation.with_description(description)).with_parameters([
        ITEM,
        deny,
        original("X-Original-URI"),
        original("X-Forwarded-Uri"),
    ])
}

/// The problems are those of the guards, whose codes begin with `PASS_`.
fn gate_responses(operation: ApiOperation) -> ApiOperation {
    let problem = |status| {
        let description = "A problem of the guards, such as `PASS_MISSING` or `PASS_EXPIRED`.";
        ResponseSpec::media(status, description, "application/problem+json")
    };
    operation
        .with_response(ResponseSpec::empty(200, "It may. `daegi-user`, `daegi-number` and `daegi-lane` name the ticket."))
        .with_response(ResponseSpec::empty(302, "To the waiting page, or to the address without the pass; only for `Accept: text/html`."))
        .with_response(problem(401))
        .with_response(problem(403))
        .with_response(problem(404))
}

fn wait_page() -> ApiOperation {
    Operation::new(("get", WAIT_PAGE), ("waitPage", "The waiting page"), waiting_page::page)
        .with_description("Joins automatically, shows the position and continues at the item's `entryUrl` when the user is admitted. In English, Korean, Japanese, Chinese (simplified and traditional), Spanish, Vietnamese or Thai: as the user chose on the page, or by `Accept-Language`. `?lang=<tag>` stores a choice in a cookie.")
        .with_response(ResponseSpec::empty(303, "Back to the page, after `?lang=`."))
        .with_parameters([ITEM])
        .with_response(ResponseSpec::media(200, "The page.", "text/html"))
        .with_response(ResponseSpec::media(404, "A page that reports the missing item.", "text/html"))
        .with_response(ResponseSpec::media(503, "The page, which retries automatically.", "text/html"))
}

fn wait_join() -> ApiOperation {
    Operation::new(("post", WAIT_PAGE), ("waitJoin", "Join without scripts"), waiting_page::join)
        .with_description("The target of the page's form in browsers without scripts: the token is stored in a cookie, and the page shows the position.")
        .with_parameters([ITEM])
        .with_response(ResponseSpec::empty(303, "Back to the page."))
        .with_problems([Code::InvalidRequest])
}

fn wait_look() -> ApiOperation {
    let path = "/wait/{itemId}/look.css";
    Operation::new(("get", path), ("waitLook", "The item's own style"), waiting_page::look)
        .with_parameters([ITEM])
        .with_response(ResponseSpec::media(200, "A style sheet.", "text/css"))
        .with_problems([Code::InvalidRequest, Code::ItemNotFound, Code::Unavailable])
}

fn wait_texts() -> ApiOperation {
    let path = "/wait/{itemId}/page.json";
    Operation::new(("get", path), ("waitTexts", "The operator's texts on the page"), waiting_page::texts)
        .with_description("For pages that poll. A stream that was opened with `page` sends the same JSON as an event named `page`.")
        .with_parameters([ITEM])
        .with_response(ResponseSpec::json::<PageTexts>(200, "The texts."))
        .with_problems([Code::InvalidRequest, Code::ItemNotFound, Code::Unavailable])
}

fn wait_script() -> ApiOperation {
    Operation::new(
        ("get", "/wait.js"),
        ("waitScript", "The script of the page"),
        waiting_page::script,
    )
    .with_response(ResponseSpec::media(200, "A script.", "text/javascript"))
}

fn widget_script() -> ApiOperation {
    Operation::new(
        ("get", "/widget.js"),
        ("waitWidgetScript", "The script of the page's widget"),
        waiting_page::widget_script,
    )
    .with_response(ResponseSpec::media(200, "A script.", "text/javascript"))
}

fn wait_style() -> ApiOperation {
    Operation::new(
        ("get", "/wait.css"),
        ("waitStyle", "The style of the page"),
        waiting_page::style,
    )
    .with_response(ResponseSpec::media(200, "A style sheet.", "text/css"))
}

fn wait_more_script() -> ApiOperation {
    let named = ("waitMoreScript", "The script that the page loads on demand");
    Operation::new(("get", "/wait-more.js"), named, waiting_page::more_script)
        .with_response(ResponseSpec::media(200, "A script.", "text/javascript"))
}

fn wait_more_style() -> ApiOperation {
    let named = ("waitMoreStyle", "The style that the page loads on demand");
    Operation::new(("get", "/wait-more.css"), named, waiting_page::more_style)
        .with_response(ResponseSpec::media(200, "A style sheet.", "text/css"))
}

fn wait_more_texts() -> ApiOperation {
    let named = ("waitMoreTexts", "The texts that the page loads on demand");
    Operation::new(("get", "/wait-texts/{language}"), named, waiting_page::more_texts)
        .with_parameters([LANGUAGE])
        .with_response(object("The texts by key."))
        .with_problems([Code::InvalidRequest])
}

fn root() -> ApiOperation {
    Operation::new(("get", "/"), ("root", "What this host is"), waiting_page::root)
        .with_description("A page for people who open the host without the address of a line.")
        .with_response(ResponseSpec::media(200, "A page.", "text/html"))
}

fn jwks() -> ApiOperation {
    Operation::new(
        ("get", "/.well-known/jwks.json"),
        ("jwks", "The public keys of passes"),
        docs::jwks,
    )
    .with_response(object("A JSON Web Key Set (RFC 7517)."))
}

fn specification() -> ApiOperation {
    Operation::new(("get", "/openapi.json"), ("openapi", "This specification"), docs::document)
        .with_response(object("An OpenAPI 3.1 document."))
}

fn docs() -> ApiOperation {
    Operation::new(("get", "/docs"), ("docs", "This specification, to read"), docs::page)
        .with_response(ResponseSpec::media(200, "A page.", "text/html"))
}

fn style() -> ApiOperation {
    Operation::new(
        ("get", "/docs.css"),
        ("docsStyle", "The style of that page"),
        openapi::serve_style,
    )
    .with_response(ResponseSpec::media(200, "A style sheet.", "text/css"))
}

fn ticket(status: u16, description: &'static str) -> ResponseSpec {
    ResponseSpec::json::<Ticket>(status, description).with_headers(RETRY_AFTER)
}

/// JSON whose schema is published elsewhere.
fn object(description: &'static str) -> ResponseSpec {
    let schema: SchemaOf = |_| json_schema!({ "type": "object" });
    let content = Some(("application/json", Some(schema)));
    ResponseSpec { content, ..ResponseSpec::empty(200, description) }
}
