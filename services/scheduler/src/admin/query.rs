//! Queries of admin calls. A parameter nobody reads is refused: a misspelt filter that is ignored
//! would answer for everything.

use daegi_runtime::http::QueryParams;

use super::{AdminError, Answer};

/// The pairs of a query, in order.
pub(super) type Query = QueryParams<Vec<(String, String)>>;

/// All values of the only parameter a call knows.
pub(super) fn values_of(query: Query, name: &str) -> Answer<Vec<String>> {
    let mut values = Vec::new();
    for (found, value) in query.0 {
        if found != name {
            let detail = format!("unknown query parameter {found:?}, only {name} is known");
            return Err(AdminError::Invalid(detail));
        }
        values.push(value);
    }
    Ok(values)
}
