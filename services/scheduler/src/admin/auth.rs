//! Who sends an admin call, and whether the caller may.
//!
//! | caller | token | role |
//! |---|---|---|
//! | the admin token of the configuration | the same in all replicas | admin; the name is what `X-Operator` says, unverified |
//! | a named operator | `daegi_op_…`, stored as a hash ([`super::operators`]) | the operator's, possibly for some items only |

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use daegi_domain::{
    ItemId, ItemPrefix, Millis, OperatorName, OperatorRecord, OperatorRole, OperatorToken,
    parse_rfc3339,
};
use daegi_runtime::http::{Peer, bearer};
use daegi_runtime::{Code, Problem};
use percent_encoding::percent_decode_str;
use tokio::sync::Mutex;

use super::{AdminResult, AdminState, store_call};

/// How long the operators in the store are cached: an operator that is removed through another replica has access
/// for this long.
const MAX_AGE_MS: Millis = 2_000;

/// Who sends an admin call.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    /// The proven name; `None` for the admin token, which names no one.
    pub(super) name: Option<OperatorName>,
    pub(super) role: OperatorRole,
    /// The items that the caller may use; `None` for all.
    items: Option<ItemPrefix>,
    expires_at: Option<Millis>,
}

/// The operators of the store by the hashes of their tokens, as this replica loaded them last.
#[derive(Debug, Default)]
pub(super) struct OperatorCache(Mutex<Option<(Millis, HashMap<String, Identity>)>>);

/// Forwards calls of operators who may make them. Calls without a valid token all get the same 401, delayed after wrong
/// tokens of their address.
pub(super) async fn authorize(
    State(admin): State<Arc<AdminState>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let identity = match bearer(request.headers()) {
        Some(token) => match admin.identity(token).await? {
            Some(identity) => identity,
            None => {
                let peer = request.extensions().get().map(|Peer(address)| address.ip());
                tokio::time::sleep(admin.sign_ins.wrong(peer)).await;
                return Err(unauthorized());
            }
        },
        None => {
            admin.sign_ins.missing();
            return Err(unauthorized());
        }
    };
    identity.check(request.method(), request.uri().path())?;
    request.extensions_mut().insert(identity);
    Ok(next.run(request).await)
}

fn unauthorized() -> Problem {
    Problem::new(Code::Unauthorized, "the admin token is missing or wrong")
}

fn forbidden(detail: String) -> Problem {
    Problem::new(Code::Forbidden, detail)
}

/// Returns the role that a call needs. `path` is relative to the admin API: `/v1/…`.
pub(super) fn required_role(method: &Method, path: &str) -> OperatorRole {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let mut segments = path.split('/').skip(2);
    let (first, action) = (segments.next(), segments.nth(1));
    match (first, action) {
        (Some("operators" | "recovery"), _) => OperatorRole::Admin,
        _ if is_read => OperatorRole::Viewer,
        (Some("waiting-queue"), _) | (Some("waiting-item"), Some("reset")) => OperatorRole::Admin,
        (Some("waiting-item"), None) if *method == Method::DELETE => OperatorRole::Admin,
        _ => OperatorRole::Operator,
    }
}

/// Returns whether a read that names no item returns only what the caller may use, or nothing about items.
fn is_filtered(path: &str) -> bool {
    const FILTERED: [&str; 7] =
        ["overview", "waiting-item", "waiting-queue", "audit", "leader", "me", "openapi.json"];
    path.split('/').nth(2).is_some_and(|first| FILTERED.contains(&first))
}

/// Returns the item that a path names, if it names a valid one.
fn item_in(path: &str) -> Option<ItemId> {
    let rest = path.strip_prefix("/v1/waiting-item/")?;
    let text = percent_decode_str(rest.split('/').next()?).decode_utf8().ok()?;
    ItemId::parse(&text).ok()
}

impl Identity {
    /// The holder of the admin token.
    fn admin() -> Self {
        Self { name: None, role: OperatorRole::Admin, items: None, expires_at: None }
    }

    fn of_record(record: OperatorRecord) -> Self {
        // An unreadable time counts as past.
        let expires_at = record.expires_at.map(|at| parse_rfc3339(&at).unwrap_or(0));
        Self { name: Some(record.name), role: record.role, items: record.items, expires_at }
    }

    /// Returns whether the caller may use an item.
    pub(super) fn covers(&self, item: &ItemId) -> bool {
        self.items.as_ref().is_none_or(|items| items.covers(item))
    }

    /// Returns the prefix of the items that the caller may use; `None` for all.
    pub(super) fn items(&self) -> Option<&ItemPrefix> {
        self.items.as_ref()
    }

    /// Refuses a call for which the role or the items of the caller do not suffice.
    fn check(&self, method: &Method, path: &str) -> Result<(), Problem> {
        let needed = required_role(method, path);
        if self.role < needed {
            let (needed, own) = (name_of(needed), name_of(self.role));
            return Err(forbidden(format!("this call needs the role {needed}, yours is {own}")));
        }
        let Some(items) = &self.items else { return Ok(()) };
        match item_in(path) {
            Some(item) if items.covers(&item) => Ok(()),
            None if matches!(*method, Method::GET | Method::HEAD) && is_filtered(path) => Ok(()),
            _ => {
                let items = items.as_str();
                Err(forbidden(format!("your access is limited to items that begin with {items}")))
            }
        }
    }
}

fn name_of(role: OperatorRole) -> &'static str {
    match role {
        OperatorRole::Viewer => "viewer",
        OperatorRole::Operator => "operator",
        OperatorRole::Admin => "admin",
    }
}

impl AdminState {
    /// Returns the holder of a token; `None` if the token is unknown or has expired.
    async fn identity(&self, token: &str) -> AdminResult<Option<Identity>> {
        if self.token.matches(token) {
            return Ok(Some(Identity::admin()));
        }
        if !OperatorToken::has_form(token) {
            return Ok(None);
        }
        let now = self.clock.now_ms();
        let mut cached = self.operator_cache.0.lock().await;
        if cached.as_ref().is_none_or(|(at, _)| now.saturating_sub(*at) >= MAX_AGE_MS) {
            *cached = Some((now, self.load_operators().await?));
        }
        let operators = cached.as_ref().map(|(_, operators)| operators);
        let identity = operators.and_then(|known| known.get(&OperatorToken::hash_of(token)));
        Ok(identity.filter(|known| known.expires_at.is_none_or(|at| at > now)).cloned())
    }

    async fn load_operators(&self) -> AdminResult<HashMap<String, Identity>> {
        let records = store_call(self.store.operators()).await?;
        let records = records.iter().filter_map(|text| {
            let record: Result<OperatorRecord, _> = serde_json::from_str(text);
            // A record of a later release must not lock out the other operators.
            record.inspect_err(|error| tracing::warn!(component = super::COMPONENT, %error, "unreadable operator ignored")).ok()
        });
        Ok(records.map(|record| (record.token_hash.clone(), Identity::of_record(record))).collect())
    }
}

impl OperatorCache {
    /// Drops the cached operators after a change by this replica.
    pub(super) async fn invalidate(&self) {
        *self.0.lock().await = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_need_less_than_changes_and_changes_less_than_resets() {
        use OperatorRole::{Admin, Operator, Viewer};
        let cases = [
            ("GET", "/v1/overview", Viewer),
            ("GET", "/v1/waiting-item/concert/line", Viewer),
            ("GET", "/v1/waiting-queue/tick-ms", Viewer),
            ("GET", "/v1/operators", Admin),
            ("POST", "/v1/waiting-item", Operator),
            ("PATCH", "/v1/waiting-item/concert/policy", Operator),
            ("POST", "/v1/waiting-item/reset/pause", Operator),
            ("PUT", "/v1/waiting-item/concert/opening/beacon", Operator),
            ("POST", "/v1/waiting-item/concert/reset", Admin),
            ("DELETE", "/v1/waiting-item/concert", Admin),
            ("PUT", "/v1/waiting-queue/token-count-to-move", Admin),
            ("POST", "/v1/recovery/declare-loss", Admin),
            ("DELETE", "/v1/operators/kim", Admin),
            ("POST", "/v1/something/new", Operator),
        ];
        for (method, path, role) in cases {
            assert_eq!(required_role(&method.parse().unwrap(), path), role, "{method} {path}");
        }
    }

    #[test]
    fn an_encoded_item_is_the_same_item() {
        let item = item_in("/v1/waiting-item/%73pring-1/pause").unwrap();
        assert_eq!(item.as_str(), "spring-1");
        assert_eq!(item_in("/v1/overview"), None);
        assert_eq!(item_in("/v1/waiting-item/%2e%2e/pause"), None);
    }
}
