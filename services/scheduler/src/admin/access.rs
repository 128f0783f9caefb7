//! The block and allow list: list, add, remove, check a request, export for the answer to a complaint.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use daegi_domain::{
    AccessError, AccessEvent, AccessEventKind, AccessList, AccessRecord, AccessRule, AccessSubject,
    Decision, ItemId, NewAccessRule, Requester, RuleId, RuleOrigin, UserId,
};
use daegi_runtime::http::{JsonBody, QueryParams};
use daegi_store::{
    AccessChange, AccessLog, AccessOutcome, AccessRules, MAX_ACCESS_EVENTS, MAX_ACCESS_RULES,
    MAX_AGENT_RULES,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audit::Operator;
use super::{AdminError, AdminResult, AdminState, with_timeout};
use crate::access_keeper::STORE_TIMEOUT;

/// Rules that one call adds or removes at most: what a body holds.
const MAX_CHANGES: usize = 200;

/// Default and maximum number of rules in a response.
pub(super) const LIMITS: (usize, usize) = (50, 1_000);

/// Rules that an entry of the audit log names.
const MAX_AUDITED: usize = 20;

/// The longest contact address.
const MAX_CONTACT: usize = 300;

/// Filter and page of the rules.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AccessQuery {
    search: Option<String>,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// One page of the list, newest rule first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "revision": 1_794_600_000_000_u64, "contactUrl": "https://shop.example/help", "total": 1, "max": 10_000,
    "matching": 1, "rules": [example()],
}))]
pub(super) struct AccessPage {
    /// Differs after every change of the list.
    revision: u64,
    /// Where blocked users can complain; null for nowhere.
    contact_url: Option<String>,
    /// Rules of the list.
    total: usize,
    /// Rules that it has at most.
    max: u32,
    /// Rules that match the filter.
    matching: usize,
    rules: Vec<AccessRecord>,
}

/// The body of a call that adds rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "rules": [{
    "kind": "block", "network": "203.0.113.0/24", "reason": "2,000 joins in a minute",
    "publicReason": "Too many automated requests came from your network.",
}] }))]
pub(super) struct AddRules {
    #[schemars(length(min = 1, max = 200))]
    rules: Vec<NewAccessRule>,
}

/// The body of a call that removes rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "ids": ["6f1c0a52d0a94be1"] }))]
pub(super) struct RemoveRules {
    #[schemars(length(min = 1, max = 200))]
    ids: Vec<RuleId>,
}

/// What a call changed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "revision": 1_794_600_000_000_u64, "added": 1, "replaced": 0, "removed": 0, "ids": ["6f1c0a52d0a94be1"],
}))]
pub(super) struct ChangedRules {
    /// All pods enforce this revision within 2 s.
    revision: u64,
    added: u32,
    replaced: u32,
    removed: u32,
    /// The ids of the rules that were given, in their order.
    ids: Vec<RuleId>,
}

/// Where blocked users can complain.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "contactUrl": "https://shop.example/help" }))]
pub(super) struct Contact {
    /// An `https:`, `http:` or `mailto:` address; null for none.
    contact_url: Option<String>,
}

/// A request as the list would see it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "itemId": "concert", "userId": "kim", "address": "203.0.113.9" }))]
pub(super) struct CheckedRequest {
    item_id: ItemId,
    #[serde(default)]
    user_id: Option<UserId>,
    #[serde(default)]
    address: Option<String>,
    #[serde(default)]
    user_agent: Option<String>,
}

/// What the list says about a request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({ "decision": "blocked", "rules": [example()] }))]
pub(super) struct Checked {
    decision: CheckedDecision,
    /// All rules that match now; an allow rule wins over all block rules, otherwise the first rule counts.
    rules: Vec<AccessRecord>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CheckedDecision {
    Neutral,
    Allowed,
    Blocked,
}

/// Filter of the export.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExportQuery {
    user_id: Option<UserId>,
}

/// `GET /access`
pub(super) async fn list(
    State(admin): State<Arc<AdminState>>,
    QueryParams(query): QueryParams<AccessQuery>,
) -> AdminResult<Json<AccessPage>> {
    let AccessRules { revision, contact_url, mut rules, .. } = read(&admin).await?;
    let total = rules.len();
    let search = query.search.unwrap_or_default().to_lowercase();
    rules.retain(|rule| search.is_empty() || text_of(rule).contains(&search));
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.created_at));
    let (default, max) = LIMITS;
    let page = rules.iter().skip(query.offset.unwrap_or(0));
    let page = page.take(query.limit.unwrap_or(default).min(max));
    Ok(Json(AccessPage {
        revision,
        contact_url,
        total,
        max: MAX_ACCESS_RULES,
        matching: rules.len(),
        rules: page.map(AccessRule::record).collect(),
    }))
}

/// `POST /access`
pub(super) async fn add(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    JsonBody(AddRules { rules }): JsonBody<AddRules>,
) -> AdminResult<Json<ChangedRules>> {
    check_count("rules", rules.len())?;
    let (now, author) = (admin.clock.now_ms(), operator.name().map(str::to_owned));
    let rule = |new: NewAccessRule| new.rule(author.clone(), RuleOrigin::Api, now);
    let rules: Vec<_> = rules.into_iter().map(rule).collect::<Result<_, _>>()?;
    if rules.iter().any(|rule| !rule.is_in_force(now)) {
        return Err(AdminError::Invalid("expiresAt is in the past".into()));
    }
    let is_agent = |rule: &&AccessRule| matches!(rule.subject, AccessSubject::UserAgent(_));
    let added = rules.iter().filter(is_agent).count();
    if added > 0 {
        let known = read(&admin).await?.rules.iter().filter(is_agent).count();
        if known + added > MAX_AGENT_RULES as usize {
            return Err(AdminError::AccessListFull("that match user agents", MAX_AGENT_RULES));
        }
    }
    let audited = json!({ "rules": rules.len(), "subjects": audited_subjects(&rules) });
    let put = rules.iter().map(|rule| {
        let kind = AccessEventKind::RuleAdded;
        (rule.clone(), AccessEvent::of_change(kind, rule, author.clone(), now))
    });
    let change = AccessChange { put: put.collect(), ..AccessChange::default() };
    let ids = rules.iter().map(AccessRule::id).collect();
    let changed = apply(&admin, &change, ids).await?;
    admin.record_audit(operator, "add access rules", None, (Value::Null, audited)).await;
    Ok(Json(changed))
}

/// `POST /access/remove`
pub(super) async fn remove(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    JsonBody(RemoveRules { ids }): JsonBody<RemoveRules>,
) -> AdminResult<Json<ChangedRules>> {
    check_count("ids", ids.len())?;
    let now = admin.clock.now_ms();
    let mut rules = read(&admin).await?.rules;
    rules.retain(|rule| ids.contains(&rule.id()));
    let remove = rules.iter().map(|rule| {
        let kind = AccessEventKind::RuleRemoved;
        (rule.id(), AccessEvent::of_change(kind, rule, operator.name().map(str::to_owned), now))
    });
    let change = AccessChange { remove: remove.collect(), ..AccessChange::default() };
    let changed = apply(&admin, &change, ids).await?;
    if changed.removed > 0 {
        let audited = json!({ "rules": rules.len(), "subjects": audited_subjects(&rules) });
        admin.record_audit(operator, "remove access rules", None, (audited, Value::Null)).await;
    }
    Ok(Json(changed))
}

/// `PUT /access/contact`
pub(super) async fn set_contact(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    JsonBody(contact): JsonBody<Contact>,
) -> AdminResult<Json<Contact>> {
    check_contact(contact.contact_url.as_deref())?;
    let before = Contact { contact_url: read(&admin).await?.contact_url };
    let contact_url = Some(contact.contact_url.clone());
    let change = AccessChange { contact_url, ..AccessChange::default() };
    apply(&admin, &change, Vec::new()).await?;
    let change = (json!(before), json!(contact));
    admin.record_audit(operator, "set contact of blocked users", None, change).await;
    Ok(Json(contact))
}

/// `POST /access/check`
pub(super) async fn check(
    State(admin): State<Arc<AdminState>>,
    JsonBody(request): JsonBody<CheckedRequest>,
) -> AdminResult<Json<Checked>> {
    let address = request.address.as_deref().map(|text| {
        let invalid = || AdminError::Invalid(format!("address is {text:?}, not an IP address"));
        text.parse().map_err(|_| invalid())
    });
    let requester = Requester {
        user: request.user_id.as_ref(),
        address: address.transpose()?,
        user_agent: request.user_agent.as_deref().map(str::as_bytes),
    };
    let list = AccessList::new(read(&admin).await?.rules)
        .map_err(|error| AdminError::Invalid(format!("the list cannot be used: {error}")))?;
    let (item, now) = (&request.item_id, admin.clock.now_ms());
    let decision = match list.decision(item, requester, now) {
        Decision::Neutral => CheckedDecision::Neutral,
        Decision::Allowed(_) => CheckedDecision::Allowed,
        Decision::Blocked(_) => CheckedDecision::Blocked,
    };
    let rules = list.matching(item, requester, now).map(|rule| rule.record()).collect();
    Ok(Json(Checked { decision, rules }))
}

/// `GET /access/export`: what happened to rules and to users, newest first.
pub(super) async fn export(
    State(admin): State<Arc<AdminState>>,
    QueryParams(query): QueryParams<ExportQuery>,
) -> AdminResult<impl IntoResponse> {
    let mut events = Vec::new();
    for log in AccessLog::ALL {
        let read = admin.store.access_events(log, MAX_ACCESS_EVENTS);
        events.extend(with_timeout(STORE_TIMEOUT, read).await?);
    }
    if let Some(user) = &query.user_id {
        let names = |event: &AccessEvent| {
            event.user_id.as_ref().or(event.rule.user_id.as_ref()) == Some(user)
        };
        events.retain(names);
    }
    // RFC 3339 in UTC with milliseconds sorts like time.
    events.sort_by(|a, b| b.at.cmp(&a.at));
    let name = "attachment; filename=\"block-list.csv\"".to_owned();
    let headers =
        [(CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, csv(&events)?))
}

/// The columns of the export.
const COLUMNS: [&str; 14] = [
    "at",
    "event",
    "userId",
    "itemId",
    "operator",
    "rule",
    "kind",
    "ruleUserId",
    "network",
    "userAgent",
    "ruleItemId",
    "reason",
    "publicReason",
    "expiresAt",
];

fn csv(events: &[AccessEvent]) -> AdminResult<Vec<u8>> {
    let failed = |error: csv::Error| AdminError::Invalid(format!("the export failed: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(failed)?;
    for AccessEvent { at, event, user_id, item_id, operator, rule } in events {
        let name = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let text = |value: Option<String>| value.unwrap_or_default();
        let fields = [
            at.clone(),
            name(json!(event)),
            text(user_id.as_ref().map(UserId::to_string)),
            text(item_id.as_ref().map(ItemId::to_string)),
            text(operator.clone()),
            rule.id.to_string(),
            name(json!(rule.kind)),
            text(rule.user_id.as_ref().map(UserId::to_string)),
            text(rule.network.map(|network| network.to_string())),
            text(rule.user_agent.as_ref().map(|pattern| pattern.to_string())),
            text(rule.item_id.as_ref().map(ItemId::to_string)),
            rule.reason.to_string(),
            text(rule.public_reason.as_ref().map(|reason| reason.to_string())),
            text(rule.expires_at.clone()),
        ];
        writer.write_record(fields.map(inert)).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| AdminError::Invalid(format!("the export failed: {error}")))
}

/// Prevents that a spreadsheet runs a text as a formula: users choose their ids.
fn inert(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t']) { format!("'{text}") } else { text }
}

async fn read(admin: &AdminState) -> AdminResult<AccessRules> {
    with_timeout(STORE_TIMEOUT, admin.store.access_rules()).await
}

async fn apply(
    admin: &AdminState,
    change: &AccessChange,
    ids: Vec<RuleId>,
) -> AdminResult<ChangedRules> {
    let changed = admin.store.change_access(change, admin.clock.now_ms());
    match with_timeout(STORE_TIMEOUT, changed).await? {
        AccessOutcome::Changed { revision, added, replaced, removed } => {
            Ok(ChangedRules { revision, added, replaced, removed, ids })
        }
        AccessOutcome::Full => Err(AdminError::AccessListFull("", MAX_ACCESS_RULES)),
    }
}

fn check_count(field: &str, count: usize) -> AdminResult<()> {
    if (1..=MAX_CHANGES).contains(&count) {
        return Ok(());
    }
    Err(AdminError::Invalid(format!("{field} has {count} entries, allowed are 1 to {MAX_CHANGES}")))
}

fn check_contact(url: Option<&str>) -> AdminResult<()> {
    let is_valid = |url: &str| {
        ["https://", "http://", "mailto:"].iter().any(|scheme| url.starts_with(scheme))
            && url.len() <= MAX_CONTACT
            && url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte))
    };
    if url.is_none_or(is_valid) {
        return Ok(());
    }
    let detail = format!(
        "contactUrl must be an https:, http: or mailto: address of at most {MAX_CONTACT} characters"
    );
    Err(AdminError::Invalid(detail))
}

/// Returns what a search looks in.
fn text_of(rule: &AccessRule) -> String {
    let author = rule.author.as_deref().unwrap_or_default();
    let item = rule.item.as_ref().map_or("", ItemId::as_str);
    let (id, subject, reason) = (rule.id(), &rule.subject, &rule.reason);
    format!("{id} {subject} {item} {reason} {author}").to_lowercase()
}

fn audited_subjects(rules: &[AccessRule]) -> Vec<String> {
    rules.iter().take(MAX_AUDITED).map(|rule| rule.to_string()).collect()
}

/// A rule for the published schema.
fn example() -> Value {
    json!({
        "id": "6f1c0a52d0a94be1", "kind": "block", "userId": null, "network": "203.0.113.0/24",
        "userAgent": null, "itemId": null, "reason": "2,000 joins in a minute", "publicReason": null,
        "expiresAt": "2026-11-21T00:00:00.000Z", "author": "kim",
        "createdAt": "2026-11-20T19:00:00.000Z", "origin": "api",
    })
}

impl From<AccessError> for AdminError {
    fn from(error: AccessError) -> Self {
        Self::Invalid(error.to_string())
    }
}
