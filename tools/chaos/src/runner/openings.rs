//! Plans openings during the run, and records their draws as pods return them.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{Topic, Topics, rfc3339};
use daegi_testkit::TopicReader;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::arrival::{OpeningTimes, OpeningWatch};
use super::fleet::ChaosFleet;
use super::items;
use super::recorder::{Recorder, now};
use crate::history::{DrawRecord, Entry, Millis, ObservedDraw, PlannedOpening};

/// Limit for the planning of an opening, and for the opening after its time.
const OPENING_TIMEOUT: Duration = Duration::from_secs(60);

const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Delay between two reads of a draw.
const READ_INTERVAL: Duration = Duration::from_millis(700);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The openings of a run.
pub(super) struct Openings(Vec<PlannedLine>);

struct PlannedLine {
    item: String,
    /// When the opening is planned, after the begin of the run.
    plan_after: Duration,
    /// How long the lobby is open.
    lobby: Duration,
    times: watch::Sender<Option<OpeningTimes>>,
}

/// Reads draws from the pods.
#[derive(Clone)]
struct DrawReader {
    http: Client,
    /// Public URL of each pod.
    pods: Vec<String>,
    item: String,
    recorder: Arc<Recorder>,
}

impl Openings {
    /// Spreads the openings over the time of the faults. Each lobby is open for an eighth of it.
    pub(super) fn new(seconds: u64) -> Self {
        let ids = items::with_opening();
        let (count, faults) = (ids.len() as u32, Duration::from_secs(seconds));
        let line = |(item, nth): (String, u32)| PlannedLine {
            item,
            plan_after: faults * nth / count,
            lobby: faults / 8,
            times: watch::Sender::new(None),
        };
        Self(ids.into_iter().zip(0..).map(line).collect())
    }

    /// The times of the opening of an item, if it has one.
    pub(super) fn watch(&self, item: &str) -> Option<OpeningWatch> {
        self.0.iter().find(|line| line.item == item).map(|line| line.times.subscribe())
    }

    /// Plans one opening after the other, each after the one before has happened. While one is ahead, no data is lost: see
    /// [`ChaosFleet::opening_ahead`]. Then reads draws until the task is dropped. Returns what was planned.
    pub(super) async fn run(
        &self,
        fleet: &ChaosFleet,
        began: Instant,
        recorder: &Arc<Recorder>,
    ) -> anyhow::Result<(Vec<(String, PlannedOpening)>, JoinSet<()>)> {
        let (mut planned, mut readers) = (Vec::new(), JoinSet::new());
        let (brokers, topics) = (fleet.brokers().await, Topics::default());
        let controls = TopicReader::open(&brokers, topics.name(Topic::ControlChanged)).await?;
        for line in &self.0 {
            sleep_until(began + line.plan_after).await;
            let ahead = fleet.opening_ahead.lock().await;
            let opens_at = line.plan(fleet).await?;
            let reader = DrawReader::new(fleet, &line.item, recorder)?;
            // Users come after the commitment is public at all pods.
            for pod in 0..reader.pods.len() {
                reader.read_until(pod, |_| true).await;
            }
            let left = opens_at.saturating_sub(now());
            let opens = Instant::now() + Duration::from_millis(left);
            line.times.send_replace(Some(OpeningTimes { planned: Instant::now(), opens }));
            planned.push((line.item.clone(), PlannedOpening { opens_at, is_draw: true }));
            sleep_until(opens).await;
            reader.read_until(0, |record| record.seed.is_some()).await;
            wait_until_recorded(&controls, &line.item).await;
            drop(ahead);
            readers.spawn(reader.read_forever());
        }
        Ok((planned, readers))
    }
}

/// Waits until the draw of an item is in Kafka, or the time is up; then a data loss may show.
async fn wait_until_recorded(controls: &TopicReader, item: &str) {
    let recorded = async {
        loop {
            let body = controls.next().await.body.unwrap_or_default();
            let record: Value = serde_json::from_slice(&body).unwrap_or_default();
            if record["itemId"] == item && record["item"]["draw"]["seed"].is_string() {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(OPENING_TIMEOUT, recorded).await;
}

impl PlannedLine {
    /// Plans the opening and returns its time. A call without a reply is repeated with a later time: only the times of the
    /// opening change then.
    async fn plan(&self, fleet: &ChaosFleet) -> anyhow::Result<Millis> {
        let deadline = Instant::now() + OPENING_TIMEOUT;
        let (lobby_ms, mut last) = (self.lobby.as_millis() as u64, None);
        while Instant::now() < deadline {
            for node in &fleet.schedulers {
                let opens_at = now() + lobby_ms;
                let opening = json!({ "opensAt": rfc3339(opens_at), "order": "draw" });
                let path = format!("waiting-item/{}/policy", self.item);
                let body = json!({ "opening": opening });
                let reply = node.admin(Method::PATCH, &path, body).await;
                if reply.as_ref().is_some_and(|reply| reply["itemId"].is_string()) {
                    return Ok(opens_at);
                }
                last = reply.or(last);
            }
            sleep(RETRY_INTERVAL).await;
        }
        anyhow::bail!("no scheduler plans the opening of {}: {last:?}", self.item)
    }
}

impl DrawReader {
    fn new(fleet: &ChaosFleet, item: &str, recorder: &Arc<Recorder>) -> anyhow::Result<Self> {
        Ok(Self {
            http: Client::builder().timeout(REQUEST_TIMEOUT).build()?,
            pods: fleet.apis.iter().map(|api| api.public.clone()).collect(),
            item: item.to_owned(),
            recorder: recorder.clone(),
        })
    }

    /// Reads the draw from a pod until the record fulfils the condition, or the time is up; then the checker finds out.
    async fn read_until(&self, pod: usize, is_done: impl Fn(&DrawRecord) -> bool) {
        let deadline = Instant::now() + OPENING_TIMEOUT;
        while Instant::now() < deadline {
            if self.read(pod).await.is_some_and(|record| is_done(&record)) {
                return;
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Reads the draw from all pods in turn.
    async fn read_forever(self) {
        for pod in (0..self.pods.len()).cycle() {
            self.read(pod).await;
            sleep(READ_INTERVAL).await;
        }
    }

    /// Records the reply, unless the pod does not know whether there is a draw.
    async fn read(&self, pod: usize) -> Option<DrawRecord> {
        let from = now();
        let url = format!("{}/api/v1/item/{}/waiting-queue/draw", self.pods[pod], self.item);
        let response = self.http.get(url).send().await.ok()?;
        let is_success = response.status().is_success();
        let body: Value = response.json().await.ok()?;
        let record = match is_success {
            true => Some(serde_json::from_value::<DrawRecord>(body).ok()?),
            false if body["code"] == "NO_DRAW" => None,
            false => return None,
        };
        let (item, to) = (self.item.clone(), now());
        self.recorder.write(&Entry::Draw(ObservedDraw { item, from, to, record: record.clone() }));
        record
    }
}
