use daegi_domain::{ItemId, UserId};
use daegi_runtime::Code;
use schemars::json_schema;

use super::{Answer, Operation, Parameter, schema_of};
use crate::http::{entry, live, queue, reading, wait};
use crate::wire::{Completed, Join, Line, PageTexts, Ticket, TokenOrPass, Verdict, Wait};

const LINE: &str = "/api/v1/item/{itemId}/waiting-queue";
const TICKET: &str = "/api/v1/item/{itemId}/waiting-queue/{token}";
const EVENTS: &str = "/api/v1/item/{itemId}/waiting-queue/{token}/events";
const SOCKET: &str = "/api/v1/item/{itemId}/waiting-queue/{token}/ws";
const WAIT_PAGE: &str = "/wait/{itemId}";
const VERIFY: &str = "/internal/v1/item/{itemId}/entry/verify";
const COMPLETE: &str = "/internal/v1/item/{itemId}/entry/complete";

const ITEM: Parameter = Parameter {
    name: "itemId",
    place: "path",
    required: true,
    about: "What people wait for.",
    schema: schema_of::<ItemId>,
};
const TOKEN: Parameter = Parameter {
    name: "token",
    place: "path",
    required: true,
    about: "The ticket's token, or `me`: then it is taken from `Authorization: Bearer <token>`.",
    schema: schema_of::<String>,
};
const USER: Parameter = Parameter {
    name: "user-id",
    place: "header",
    required: false,
    about: "The person. Joining needs it here or in the body; beside a token it must agree.",
    schema: schema_of::<UserId>,
};
const WAIT: Parameter = Parameter {
    name: "waitMs",
    place: "query",
    required: false,
    about: "How long the answer may be held back until status, position or line state change. It comes earlier when the pod holds too many or a newer connection of the ticket replaces this one.",
    schema: |_| json_schema!({ "type": "integer", "minimum": 0, "maximum": Wait::MAX_MS, "default": 0 }),
};
const LAST_EVENT: Parameter = Parameter {
    name: "Last-Event-ID",
    place: "header",
    required: false,
    about: "The id of the last event that was heard: it is not told again.",
    schema: schema_of::<String>,
};

const PAGE: Parameter = Parameter {
    name: "page",
    place: "query",
    required: false,
    about: "The `revision` of the waiting page's texts that the client shows. The stream sends an event named `page` with the JSON of `/wait/{itemId}/page.json` whenever the texts are other ones. Without it no such event is sent.",
    schema: schema_of::<String>,
};

const RETRY_AFTER: &[(&str, &str)] =
    &[("Retry-After", "Seconds until it makes sense to ask again; while waiting only.")];
const ANY_TICKET: [Code; 6] = [
    Code::InvalidRequest,
    Code::InvalidToken,
    Code::TokenMismatch,
    Code::ItemNotFound,
    Code::LineRestarted,
    Code::Unavailable,
];

/// Every route of the api, in the order in which a reader should meet them.
pub(crate) fn operations() -> Vec<Operation> {
    let people = [join(), poll(), events(), socket(), leave(), line()];
    let page = [wait_page(), wait_join(), wait_look(), wait_texts(), wait_script(), wait_style()];
    let reading = [jwks(), document(), docs(), style()];
    people.into_iter().chain([verify(), complete()]).chain(page).chain(reading).collect()
}

fn join() -> Operation {
    Operation::new(("post", LINE), ("join", "Join the line"), queue::join)
        .about("Gives a place at the end of the line, or finds the one the person has: joining again returns the same token and the same place. Whoever presents their token as `Authorization: Bearer` has its place even if the store lost it.")
        .with([ITEM, USER])
        .takes::<Join>(false)
        .answers(ticket(201, "A new place."))
        .answers(ticket(200, "The place the person had already."))
        .fails([Code::InvalidRequest, Code::ItemNotFound, Code::SoldOut, Code::QueueDisabled])
        .fails([Code::PayloadTooLarge, Code::UnsupportedMediaType, Code::LineFull])
        .fails([Code::RateLimited, Code::Unavailable, Code::StoreFull])
}

fn poll() -> Operation {
    Operation::new(("get", TICKET), ("poll", "Ask where a ticket stands"), queue::poll)
        .about("Ask again after `pollAfterMs`, or let the answer be held back with `waitMs`. Asking also tells that the person is still there, and after the store lost data it puts them back at their place: until then the answer may be 503, and the line is `RECOVERING` for a while.")
        .with([ITEM, TOKEN, WAIT, USER])
        .answers(ticket(200, "The ticket as it is now."))
        .fails(ANY_TICKET)
}

fn events() -> Operation {
    Operation::new(("get", EVENTS), ("events", "Follow a ticket as server-sent events"), live::events)
        .about("Events named `ticket` whose data is the JSON of a poll: the first at once, then whenever it changes. A comment comes every 15 s. The stream ends after a final status, or with `retry` when the pod restarts: come back then, the place is kept. A stream that cannot go on ends with an event named `problem`, whose data is the problem that a poll would answer (`LINE_RESTARTED`, `ITEM_NOT_FOUND`), or `RATE_LIMITED` when a newer connection of the same ticket replaced this one: poll then.")
        .with([ITEM, TOKEN, LAST_EVENT, PAGE, USER])
        .answers(media("The stream.", "text/event-stream"))
        .fails(ANY_TICKET)
}

fn socket() -> Operation {
    Operation::new(("get", SOCKET), ("socket", "Follow a ticket over a WebSocket"), live::socket)
        .about("Text messages with the JSON of a poll: the first at once, then whenever it changes. The server closes with 1000 after a final status, with 1012 and the reason `retry=<ms>` when the pod restarts, and with 1008 and the code of a problem when the ticket cannot be followed any more, or `RATE_LIMITED` when a newer connection of the same ticket replaced this one: poll then.")
        .with([ITEM, TOKEN, USER])
        .answers(Answer { status: 101, about: "The socket.", content: None, headers: &[] })
        .fails(ANY_TICKET)
}

fn leave() -> Operation {
    Operation::new(("delete", TICKET), ("leave", "Leave the line"), queue::leave)
        .about("Gives the place or the entry back. Leaving twice is no mistake.")
        .with([ITEM, TOKEN, USER])
        .answers(Answer { status: 204, about: "Left.", content: None, headers: &[] })
        .fails([Code::InvalidRequest, Code::InvalidToken, Code::TokenMismatch, Code::Unavailable])
}

fn line() -> Operation {
    Operation::new(("get", LINE), ("line", "Look at a line"), queue::line)
        .with([ITEM])
        .answers(json(200, "The line.", schema_of::<Line>))
        .fails([Code::InvalidRequest, Code::ItemNotFound, Code::Unavailable])
}

fn verify() -> Operation {
    Operation::new(("post", VERIFY), ("verify", "Check an entry"), entry::verify)
        .internal()
        .about("Whether the holder of a token or a pass may be inside now. A pass can be checked offline against the published keys; this call also knows entries that were completed or given back.")
        .with([ITEM])
        .takes::<TokenOrPass>(true)
        .answers(json(200, "The verdict.", schema_of::<Verdict>))
        .fails([Code::InvalidRequest, Code::PayloadTooLarge])
        .fails([Code::UnsupportedMediaType, Code::Unavailable])
}

fn complete() -> Operation {
    Operation::new(("post", COMPLETE), ("complete", "Complete an entry"), entry::complete)
        .internal()
        .about("The order was placed: the entry of a token or a pass ends and makes room for the next person. An expired pass is of an entry that has ended: nothing is released.")
        .with([ITEM])
        .takes::<TokenOrPass>(true)
        .answers(json(200, "Whether this call ended it.", schema_of::<Completed>))
        .fails([Code::InvalidRequest, Code::InvalidToken, Code::TokenMismatch])
        .fails([Code::PayloadTooLarge, Code::UnsupportedMediaType, Code::Unavailable])
}

fn wait_page() -> Operation {
    let html = Some(("text/html", None));
    Operation::new(("get", WAIT_PAGE), ("waitPage", "The waiting page"), wait::page)
        .about("Joins by itself, shows where the person stands and goes to the item's `entryUrl` when it is their turn. In Korean and English, by `Accept-Language`.")
        .with([ITEM])
        .answers(media("The page.", "text/html"))
        .answers(Answer { status: 404, about: "A page that says that there is no such item.", content: html, headers: &[] })
        .answers(Answer { status: 503, about: "The page, which tries again by itself.", content: html, headers: &[] })
}

fn wait_join() -> Operation {
    Operation::new(("post", WAIT_PAGE), ("waitJoin", "Join without scripts"), wait::join)
        .about("What the page's form does in browsers without scripts: the ticket is kept in a cookie, and the page tells where it stands.")
        .with([ITEM])
        .answers(Answer { status: 303, about: "Back to the page.", content: None, headers: &[] })
        .fails([Code::InvalidRequest])
}

fn wait_look() -> Operation {
    let path = "/wait/{itemId}/look.css";
    Operation::new(("get", path), ("waitLook", "The item's own colours"), wait::look)
        .with([ITEM])
        .answers(media("A style sheet.", "text/css"))
        .fails([Code::InvalidRequest, Code::ItemNotFound, Code::Unavailable])
}

fn wait_texts() -> Operation {
    let path = "/wait/{itemId}/page.json";
    Operation::new(("get", path), ("waitTexts", "The operator's texts on the page"), wait::texts)
        .about("For pages that poll. A stream that was opened with `page` sends the same JSON as an event named `page`.")
        .with([ITEM])
        .answers(json(200, "The texts.", schema_of::<PageTexts>))
        .fails([Code::InvalidRequest, Code::ItemNotFound, Code::Unavailable])
}

fn wait_script() -> Operation {
    Operation::new(("get", "/wait.js"), ("waitScript", "The script of the page"), wait::script)
        .answers(media("A script.", "text/javascript"))
}

fn wait_style() -> Operation {
    Operation::new(("get", "/wait.css"), ("waitStyle", "The style of the page"), wait::style)
        .answers(media("A style sheet.", "text/css"))
}

fn jwks() -> Operation {
    let keys =
        || json(200, "A JSON Web Key Set (RFC 7517).", |_| json_schema!({ "type": "object" }));
    Operation::new(
        ("get", "/.well-known/jwks.json"),
        ("jwks", "The public keys of passes"),
        reading::jwks,
    )
    .answers(keys())
}

fn document() -> Operation {
    let about = "An OpenAPI 3.1 document.";
    Operation::new(("get", "/openapi.json"), ("openapi", "This specification"), reading::document)
        .answers(json(200, about, |_| json_schema!({ "type": "object" })))
}

fn docs() -> Operation {
    Operation::new(("get", "/docs"), ("docs", "This specification, to read"), reading::docs)
        .answers(media("A page.", "text/html"))
}

fn style() -> Operation {
    Operation::new(("get", "/docs.css"), ("docsStyle", "The style of that page"), reading::style)
        .answers(media("A style sheet.", "text/css"))
}

fn ticket(status: u16, about: &'static str) -> Answer {
    Answer { headers: RETRY_AFTER, ..json(status, about, schema_of::<Ticket>) }
}

fn json(status: u16, about: &'static str, schema: super::SchemaOf) -> Answer {
    Answer { status, about, content: Some(("application/json", Some(schema))), headers: &[] }
}

fn media(about: &'static str, media: &'static str) -> Answer {
    Answer { status: 200, about, content: Some((media, None)), headers: &[] }
}
