//! Every metric in dashboards and alerts exists.

use std::collections::BTreeSet;

use super::fleet::file;
use super::prometheus::Prometheus;

const FILES: [&str; 2] =
    ["infra/helm/daegi/files/alerts.yml", "infra/helm/daegi/files/dashboards/daegi.json"];

pub(super) async fn all_exist(prometheus: &Prometheus) {
    let scraped = prometheus.query("label/__name__/values").await;
    let scraped: BTreeSet<String> =
        scraped.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    let used: BTreeSet<String> = FILES.iter().flat_map(|path| names(&file(path))).collect();
    assert!(used.len() > 20, "{used:?}");
    let missing: Vec<_> = used.difference(&scraped).collect();
    assert!(missing.is_empty(), "metrics without samples: {missing:?}");
}

/// Returns every metric name in a file.
fn names(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    words.filter(|word| word.starts_with("daegi_")).map(ToOwned::to_owned).collect()
}
