//! The JSON of the HTTP contract, from which the published schemas are generated.

use std::collections::BTreeMap;

use daegi_domain::{
    EndReason, Eta, Item, ItemId, ItemName, LaneName, Language, LineState, Millis, Order, PageLink,
    PageText, Phase, Status, StockChance, StockOutlook, UserId, rfc3339,
};
use daegi_runtime::http::build_hash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A ticket and its current state.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = waiting_example(), example = entry_example())]
pub(crate) struct Ticket {
    /// The item.
    pub(crate) item_id: ItemId,
    /// The user who holds the ticket.
    pub(crate) user_id: UserId,
    /// The ticket's signed text. Store it: it is the only proof of the position.
    pub(crate) token: String,
    /// The state of the ticket.
    pub(crate) status: Status,
    /// The position in the line, 1 for the first; 0 unless the ticket waits; null before the draw of a lobby.
    pub(crate) position: Option<u64>,
    /// The number of waiting tickets.
    pub(crate) waiting_count: u64,
    /// Whether the line moves, and if not, the reason.
    pub(crate) line_state: LineState,
    /// The estimated wait; null while it is unknown, while the line does not move, while the stock will
    /// probably not be enough, and unless the ticket waits.
    pub(crate) eta_seconds: Option<Eta>,
    /// When to poll again; 0 unless the ticket waits.
    pub(crate) poll_after_ms: u64,
    /// The pass, a JWT, once the ticket is admitted.
    pub(crate) pass: Option<String>,
    /// When the entry expires, as RFC 3339.
    pub(crate) pass_expires_at: Option<String>,
    /// The URL to continue at, if the item has one.
    pub(crate) entry_url: Option<String>,
    /// When the line opens or opened, as RFC 3339, if that is planned.
    pub(crate) opens_at: Option<String>,
    /// Milliseconds until the line opens, by the server's clock; null unless the ticket waits in a lobby.
    pub(crate) opens_in_ms: Option<u64>,
    /// The round of drand's quicknet on which the order of the lobby depends; null without one, and unless the
    /// ticket waits in a lobby.
    pub(crate) beacon_round: Option<u64>,
    /// Whether the draw has begun: the users of the lobby are known, and the line opens when the round is
    /// published, in `opensInMs`, or null if the round is late. Later users stand behind them.
    pub(crate) drawing: bool,
    /// The rank of the ticket in the draw, 1 for the first; null before the draw and outside of it.
    pub(crate) cohort_rank: Option<u64>,
    /// The name of the lane in which the user waits; null in the standard lane. Position, waiting count and
    /// estimate are those of the lane.
    pub(crate) lane: Option<LaneName>,
    /// How much is left and how many are ahead; null unless the ticket waits in a line that moves and whose
    /// stock limits the entries.
    pub(crate) stock_ahead: Option<StockAhead>,
}

/// How much is left for a waiting ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StockAhead {
    /// How much of the stock no admitted user holds.
    pub(crate) left: u64,
    /// How many tickets are served before this one.
    pub(crate) ahead: u64,
    /// Whether it will be enough.
    pub(crate) chance: StockChance,
}

impl From<StockOutlook> for StockAhead {
    fn from(StockOutlook { left, ahead, chance }: StockOutlook) -> Self {
        Self { left, ahead, chance }
    }
}

impl Ticket {
    /// Returns the same JSON as serde. Ids and token are written without escaping, because none of their
    /// characters needs it; the search for such characters took a tenth of a poll.
    ///
    /// # Errors
    /// None: a struct of strings and numbers always has a JSON form.
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        // Enough for a waiting ticket, so that the buffer never grows.
        let mut json = Vec::with_capacity(512);
        plain(&mut json, b"{\"itemId\":\"", self.item_id.as_str());
        plain(&mut json, b"\",\"userId\":\"", self.user_id.as_str());
        plain(&mut json, b"\",\"token\":\"", &self.token);
        value(&mut json, b"\",\"status\":", &self.status)?;
        value(&mut json, b",\"position\":", &self.position)?;
        value(&mut json, b",\"waitingCount\":", &self.waiting_count)?;
        value(&mut json, b",\"lineState\":", &self.line_state)?;
        value(&mut json, b",\"etaSeconds\":", &self.eta_seconds)?;
        value(&mut json, b",\"pollAfterMs\":", &self.poll_after_ms)?;
        value(&mut json, b",\"pass\":", &self.pass)?;
        value(&mut json, b",\"passExpiresAt\":", &self.pass_expires_at)?;
        value(&mut json, b",\"entryUrl\":", &self.entry_url)?;
        value(&mut json, b",\"opensAt\":", &self.opens_at)?;
        value(&mut json, b",\"opensInMs\":", &self.opens_in_ms)?;
        value(&mut json, b",\"beaconRound\":", &self.beacon_round)?;
        value(&mut json, b",\"drawing\":", &self.drawing)?;
        value(&mut json, b",\"cohortRank\":", &self.cohort_rank)?;
        value(&mut json, b",\"lane\":", &self.lane)?;
        value(&mut json, b",\"stockAhead\":", &self.stock_ahead)?;
        json.push(b'}');
        Ok(json)
    }
}

fn plain(json: &mut Vec<u8>, name: &[u8], text: &str) {
    json.extend_from_slice(name);
    json.extend_from_slice(text.as_bytes());
}

fn value(json: &mut Vec<u8>, name: &[u8], value: &impl Serialize) -> serde_json::Result<()> {
    json.extend_from_slice(name);
    serde_json::to_writer(json, value)
}

/// The user who joins. Optional if the `user-id` header is sent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "userId": "kim" }))]
pub(crate) struct Join {
    /// The user. Must equal the header if both are sent.
    #[serde(default)]
    pub(crate) user_id: Option<UserId>,
    /// An invitation code of a lane. Must equal the `daegi-code` header if both are sent.
    #[serde(default)]
    #[schemars(length(max = 128))]
    pub(crate) code: Option<String>,
    /// The solution of a challenge, `<challenge>:<nonce>` or `<challenge>:<response>`. Must equal the `daegi-challenge`
    /// header if both are sent.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub(crate) challenge: Option<String>,
}

/// Query of a poll.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wait {
    /// How long the response may be delayed until something changes, in milliseconds.
    #[serde(default)]
    pub(crate) wait_ms: Option<u64>,
}

/// Query of the record of a draw.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct DrawQuery {
    /// The token of a ticket, for the proof that it took part.
    #[serde(default)]
    pub(crate) token: Option<String>,
}

/// The public view of a line.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "itemId": "concert",
    "itemName": "Friday 8 pm",
    "lineState": "OPEN",
    "waitingCount": 4200,
    "enteredCount": 200,
    "admittedPerSecond": 9.8,
    "opensAt": null,
    "opensInMs": null,
    "lobbyAt": null,
    "lobbyInMs": null,
    "closesAt": null,
    "order": null,
    "beaconRound": null,
    "drawing": false,
    "lanes": [
        { "name": "standard", "waitingCount": 4100, "sharePercent": 70, "first": false },
        { "name": "members", "waitingCount": 100, "sharePercent": 30, "first": false },
    ],
}))]
pub(crate) struct Line {
    /// The item.
    pub(crate) item_id: ItemId,
    /// The display name of the item.
    pub(crate) item_name: ItemName,
    /// Whether the line moves, and if not, the reason.
    pub(crate) line_state: LineState,
    /// The number of waiting tickets, returning ones included.
    pub(crate) waiting_count: u64,
    /// The number of entries.
    pub(crate) entered_count: u64,
    /// Tickets that left the front of the line per second, over the last 30 s.
    pub(crate) admitted_per_second: f64,
    /// The opening of the line. All fields are null without one.
    #[serde(flatten)]
    pub(crate) opening: OpeningTimes,
    /// The lanes, the standard lane first; empty if the item has no others.
    pub(crate) lanes: Vec<LaneView>,
}

/// The public view of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LaneView {
    /// The name of the lane; `standard` for users without an invitation.
    pub(crate) name: String,
    /// The number of waiting tickets of the lane, returning ones included.
    pub(crate) waiting_count: u64,
    /// The share of the rate while users wait in all lanes, in percent; null for a lane that is served first.
    pub(crate) share_percent: Option<u32>,
    /// Whether the lane is served before all lanes with a share.
    pub(crate) first: bool,
}

/// When a line opens and closes. The times in milliseconds are by the server's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpeningTimes {
    /// When the line opens or opened, as RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub(crate) opens_at: Option<String>,
    /// Milliseconds until the line opens; null after it has opened, and while the round of its draw is late.
    pub(crate) opens_in_ms: Option<u64>,
    /// When the lobby opens or opened, as RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub(crate) lobby_at: Option<String>,
    /// Milliseconds until the lobby opens; null after that.
    pub(crate) lobby_in_ms: Option<u64>,
    /// When the line closes or closed, as RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub(crate) closes_at: Option<String>,
    /// In which order the users of the lobby are served.
    pub(crate) order: Option<Order>,
    /// The round of drand's quicknet on which the order of the lobby depends, if there is one.
    pub(crate) beacon_round: Option<u64>,
    /// Whether the draw has begun: the users of the lobby are known, and the line opens when the round is
    /// published, in `opensInMs`, or null if the round is late.
    pub(crate) drawing: bool,
}

impl OpeningTimes {
    /// Returns the opening of an item as of `now`.
    pub(crate) fn new(item: &Item, now: Millis) -> Self {
        let Some(opening) = &item.policy.opening else { return Self::default() };
        let phase = item.phase(now);
        let ahead = |at: Millis| at.saturating_sub(now);
        let is_ahead = matches!(phase, Phase::Scheduled | Phase::Lobby);
        let drawing = is_ahead && opening.beacon.is_some() && item.is_drawing();
        let opens_at = item.opens_at().filter(|at| is_ahead && (!drawing || *at > now));
        Self {
            opens_at: opening.opens_at.map(rfc3339),
            opens_in_ms: opens_at.map(ahead),
            lobby_at: opening.lobby_at.map(rfc3339),
            lobby_in_ms: opening.lobby_at.filter(|_| phase == Phase::Scheduled).map(ahead),
            closes_at: opening.closes_at.map(rfc3339),
            order: Some(opening.order),
            beacon_round: opening.beacon_round(),
            drawing,
        }
    }
}

impl Wait {
    /// Maximum of `waitMs`.
    pub(crate) const MAX_MS: u64 = 30_000;
}

/// Identifies an entry by exactly one of token and pass.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({ "token": TOKEN_EXAMPLE }))]
#[schemars(extend("oneOf" = [
    { "required": ["token"], "properties": { "token": { "type": "string" }, "pass": { "type": "null" } } },
    { "required": ["pass"], "properties": { "pass": { "type": "string" }, "token": { "type": "null" } } },
]))]
pub(crate) struct TokenOrPass {
    /// A ticket's token.
    #[serde(default)]
    pub(crate) token: Option<String>,
    /// A pass.
    #[serde(default)]
    pub(crate) pass: Option<String>,
}

/// What a guard or gateway saw of the service behind a line since its last report.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({
    "instance": "shop-1",
    "requests": 120,
    "errors": 2,
    "latency": [{ "upToMs": 50, "count": 90 }, { "upToMs": 250, "count": 30 }],
}))]
pub(crate) struct OriginHealth {
    /// The reporting process, unique among those of the item.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9._:-]+$"))]
    pub(crate) instance: String,
    /// Requests that the service answered, or that had no answer.
    #[schemars(range(max = 10_000_000))]
    pub(crate) requests: u64,
    /// Those of them that failed: status 500 or above, or no answer. At most `requests`.
    #[serde(default)]
    pub(crate) errors: u64,
    /// The response times as counts of requests that took more than the bound before and at most `upToMs`. Together at most `requests`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(crate) latency: Vec<OriginLatency>,
    /// The 95th percentile of response times, for reporters without a histogram.
    #[serde(default)]
    pub(crate) p95_ms: Option<u32>,
}

impl OriginHealth {
    pub(crate) const MAX_REQUESTS: u64 = 10_000_000;
    pub(crate) const MAX_BUCKETS: usize = 64;
}

/// Requests of one range of response times.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OriginLatency {
    /// The upper bound, in milliseconds.
    pub(crate) up_to_ms: u32,
    /// How many requests.
    pub(crate) count: u64,
}

/// Whether an entry is live.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "valid": true,
    "userId": "kim",
    "expiresAt": "2026-11-20T20:05:00.000Z",
}))]
#[schemars(example = json!({ "valid": false, "reason": "EXPIRED" }))]
pub(crate) struct Verdict {
    /// Whether the entry is live.
    pub(crate) valid: bool,
    /// The user, if valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<UserId>,
    /// When the entry expires, as RFC 3339, if valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
    /// The reason, if not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
}

/// Why an entry is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Reason {
    /// Malformed or forged.
    InvalidToken,
    /// The token or pass belongs to another item.
    TokenMismatch,
    /// The entry has expired.
    Expired,
    /// The ticket still waits.
    Waiting,
    /// The entry was completed.
    Completed,
    /// The user left.
    Left,
    /// The user was absent for too long.
    Abandoned,
    /// The user joined again and has another ticket.
    Replaced,
    /// The ticket was issued before the line was restarted.
    LineRestarted,
    /// There is no such item.
    ItemNotFound,
}

/// The result of a completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(example = json!({ "released": true }))]
pub(crate) struct Completed {
    /// Whether this call ended the entry; false if it had already ended.
    pub(crate) released: bool,
}

impl Verdict {
    pub(crate) fn valid(user: UserId, expires_at: Millis) -> Self {
        Self {
            valid: true,
            user_id: Some(user),
            expires_at: Some(rfc3339(expires_at)),
            reason: None,
        }
    }

    pub(crate) fn refused(reason: Reason) -> Self {
        Self { valid: false, user_id: None, expires_at: None, reason: Some(reason) }
    }
}

/// Not merged with the conversion to [`Status`]: the three enums are separate contracts, and a new end
/// reason needs a decision in each.
impl From<EndReason> for Reason {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Expired => Self::Expired,
            EndReason::Completed => Self::Completed,
            EndReason::Left => Self::Left,
            EndReason::Abandoned => Self::Abandoned,
            EndReason::Replaced => Self::Replaced,
        }
    }
}

/// A code that hands a ticket over to another device of its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({ "code": HANDOVER_EXAMPLE, "issuedAt": 1_795_032_000_000_u64, "expiresInMs": 120_000 }))]
pub(crate) struct Handover {
    /// The code. It works once, and issuing another one does not void it until that one is used.
    pub(crate) code: String,
    /// When it was issued, in Unix milliseconds by the server's clock.
    pub(crate) issued_at: u64,
    /// How long it is valid.
    pub(crate) expires_in_ms: u64,
}

/// Which handover codes of a ticket were used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({ "usedUpTo": 1_795_032_000_000_u64 }))]
pub(crate) struct HandoverUse {
    /// When the code that was used last was issued, in Unix milliseconds: it and all earlier ones do not work any more.
    /// Null if none was used in the last minutes.
    pub(crate) used_up_to: Option<u64>,
}

/// A handover code to use.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({ "code": HANDOVER_EXAMPLE }))]
pub(crate) struct TakeOver {
    /// The code.
    #[schemars(length(max = 256))]
    pub(crate) code: String,
}

/// The operator's texts on the waiting page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "revision": "0d735d1b348ffb89",
    "name": "Friday 8 pm",
    "message": "Doors open at 8.",
    "links": { "completed": { "url": "/orders", "label": null }, "soldOut": null, "closed": null, "home": null },
    "languages": {
        "ko": {
            "name": "금요일 저녁 8시",
            "message": "8시에 입장합니다.",
            "links": { "completed": { "url": "/orders", "label": "내 주문" }, "soldOut": null, "closed": null, "home": null },
        },
    },
}))]
pub(crate) struct PageTexts {
    /// Identifies this version of the texts. Equal on every pod of one build.
    pub(crate) revision: String,
    /// For languages that are not in `languages`.
    #[serde(flatten)]
    pub(crate) texts: LocalTexts,
    /// The texts of the languages in which the operator wrote one, by language tag.
    pub(crate) languages: BTreeMap<String, LocalTexts>,
}

/// The operator's texts in one language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocalTexts {
    /// The displayed name.
    pub(crate) name: String,
    /// The operator's message; null if there is none.
    pub(crate) message: Option<String>,
    /// Where users whose wait is over can go.
    pub(crate) links: Links,
}

/// The operator's links, by the state in which the page shows them; null where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Links {
    /// After the order was placed.
    pub(crate) completed: Option<Link>,
    /// While the item is sold out.
    pub(crate) sold_out: Option<Link>,
    /// When the line is closed.
    pub(crate) closed: Option<Link>,
    /// For tickets that ended in another way.
    pub(crate) home: Option<Link>,
}

/// A link of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Link {
    /// An http(s) URL, or a path.
    pub(crate) url: String,
    /// The text of the link; null takes the page's own.
    pub(crate) label: Option<String>,
}

/// The query of a stream.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StreamQuery {
    /// Revision of the page texts that the client shows.
    #[serde(default)]
    pub(crate) page: Option<String>,
}

impl PageTexts {
    pub(crate) fn new(item: &Item) -> Self {
        let page = &item.policy.page;
        let links = &page.links;
        let labels = [&links.home, &links.completed, &links.sold_out, &links.closed];
        let labels = labels.into_iter().flatten().filter_map(|link| link.label.as_ref());
        let written = page.title.iter().chain(&page.message).chain(labels);
        let languages: BTreeMap<String, LocalTexts> = written
            .flat_map(PageText::languages)
            .map(|language| (language.tag().to_owned(), LocalTexts::new(item, language)))
            .collect();
        let texts = LocalTexts::new(item, Language::English);
        let json = serde_json::to_string(&(&texts, &languages)).unwrap_or_default();
        Self { revision: build_hash(&[&json]), texts, languages }
    }

    /// Returns the texts in a language.
    pub(crate) fn in_language(&self, language: Language) -> &LocalTexts {
        self.languages.get(language.tag()).unwrap_or(&self.texts)
    }
}

impl LocalTexts {
    fn new(item: &Item, language: Language) -> Self {
        let page = &item.policy.page;
        let text = |text: &PageText| text.in_language(language).to_owned();
        let link = |link: &Option<PageLink>| {
            let link = link.as_ref().or(page.links.home.as_ref())?;
            Some(Link { url: link.url.clone(), label: link.label.as_ref().map(text) })
        };
        Self {
            name: page.title.as_ref().map_or_else(|| item.name.as_str().to_owned(), text),
            message: page.message.as_ref().map(text),
            links: Links {
                completed: link(&page.links.completed),
                sold_out: link(&page.links.sold_out),
                closed: link(&page.links.closed),
                home: link(&page.links.home),
            },
        }
    }
}

const TOKEN_EXAMPLE: &str = "kim-concert-6878a70f-3101-8000-8ef0-de86b3eaf66c";

const HANDOVER_EXAMPLE: &str = "010001a1d2b3c4000184a7c1d2e3f00112233445566778899aabbccddeeff-kim";

/// A ticket in line, for the published schema.
fn waiting_example() -> Value {
    json!({
        "itemId": "concert",
        "userId": "kim",
        "token": TOKEN_EXAMPLE,
        "status": "WAITING",
        "position": 1314,
        "waitingCount": 4200,
        "lineState": "OPEN",
        "etaSeconds": { "p10": 118, "p50": 134, "p90": 170 },
        "pollAfterMs": 4621,
        "pass": null,
        "passExpiresAt": null,
        "entryUrl": null,
        "opensAt": null,
        "opensInMs": null,
        "beaconRound": null,
        "drawing": false,
        "cohortRank": null,
        "lane": null,
        "stockAhead": { "left": 1500, "ahead": 1313, "chance": "ENOUGH" },
    })
}

/// The same ticket after its admission.
fn entry_example() -> Value {
    let mut example = waiting_example();
    for (field, value) in [
        ("status", json!("ENTERABLE")),
        ("position", json!(0)),
        ("etaSeconds", Value::Null),
        ("stockAhead", Value::Null),
        ("pollAfterMs", json!(0)),
        ("pass", json!("eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJraW0ifQ.c2lnbmF0dXJl")),
        ("passExpiresAt", json!("2026-11-20T20:05:00.000Z")),
        ("entryUrl", json!("/shop/checkout")),
    ] {
        example[field] = value;
    }
    example
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> Ticket {
        Ticket {
            item_id: ItemId::parse("concert-2026.~_A").unwrap(),
            user_id: UserId::parse("kim+lee@example.com:1").unwrap(),
            token: "kim+lee@example.com:1-concert-2026.~_A-6878a70f-3101-8000-8ef0-de86b3eaf66c"
                .to_owned(),
            status: Status::Waiting,
            position: Some(u64::MAX),
            waiting_count: 0,
            line_state: LineState::Open,
            eta_seconds: Some(Eta { p10: 5, p50: 7, p90: 19 }),
            poll_after_ms: 4_621,
            pass: None,
            pass_expires_at: None,
            entry_url: None,
            opens_at: Some("2026-11-20T20:00:00.000Z".to_owned()),
            opens_in_ms: Some(1_234),
            beacon_round: Some(657_413),
            drawing: true,
            cohort_rank: Some(17),
            lane: Some(LaneName::parse("members").unwrap()),
            stock_ahead: Some(StockAhead { left: 412, ahead: 379, chance: StockChance::Enough }),
        }
    }

    #[test]
    fn it_is_the_json_that_the_schema_describes() {
        let inside = Ticket {
            status: Status::Enterable,
            line_state: LineState::SoldOut,
            eta_seconds: None,
            pass: Some("a.b.c".to_owned()),
            pass_expires_at: Some("2026-11-20T20:00:00Z".to_owned()),
            entry_url: Some("https://shop.example/\"?a=\\".to_owned()),
            ..waiting()
        };
        for ticket in [waiting(), inside] {
            let expected = serde_json::to_string(&ticket).unwrap();
            assert_eq!(String::from_utf8(ticket.to_json().unwrap()).unwrap(), expected);
        }
    }
}
