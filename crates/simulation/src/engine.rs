//! One run of a sale on the memory store.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use daegi_domain::line_rules::{self, line_state};
use daegi_domain::liveness::SLICE_MS;
use daegi_domain::{
    EndReason, Eta, ItemChange, ItemId, ItemName, Lane, LineState, LivenessPage, Millis, Number,
    Policy, Settings, Ticket, TicketEvent, UserId, WaitModel, lane,
};
use daegi_store::{
    AdmissionStore, ChangeCursor, Epoch, Expiry, ItemStore, JoinOutcome, LaneJoin, LiveState,
    MemoryStore, OutboxStore, TicketState, TicketStore,
};
use futures_util::FutureExt;

use crate::forecast::{Forecast, PerMinute, Waits};
use crate::looks::{EstimateScore, Look};
use crate::{Error, Limits, Sale};

/// When simulated sales begin: the start of a slice of liveness.
const START: Millis = 1_700_000_010_000;

/// Users per call of the store.
const JOINS_PER_CALL: usize = 1_000;

/// Chunks of a line that one round sweeps, as the leader does.
const SWEEP_CHUNKS: u32 = 25;

/// How many visitors look at their estimate, and how often.
const LOOKERS: usize = 64;
const LOOK_INTERVAL_MS: Millis = 10_000;

/// After how many rounds the time of the run is checked.
const ROUNDS_PER_CHECK: u64 = 64;

const MINUTE_MS: Millis = 60_000;

/// Simulates a sale.
///
/// # Errors
/// If the sale is invalid or the run takes too long.
pub fn simulate(sale: &Sale, limits: &Limits) -> Result<Forecast, Error> {
    sale.check(limits)?;
    // Futures of the memory store are ready when they are polled first.
    let run = async { Run::new(sale).await?.finish(limits).await };
    run.now_or_never().unwrap_or(Err(Error::Invalid("the memory store was not ready".into())))
}

/// A visitor of the sale.
#[derive(Debug, Clone)]
struct Visitor {
    lane: Lane,
    arrives_at: Millis,
    /// Keeps the waiting page open.
    stays: bool,
    buys: bool,
    /// `None` before the join, and for a visitor who was refused.
    number: Option<Number>,
    admitted_at: Option<Millis>,
    looks: Option<Vec<Look>>,
}

struct Run<'a> {
    sale: &'a Sale,
    store: MemoryStore,
    epoch: Epoch,
    item: ItemId,
    settings: Settings,
    rng: fastrand::Rng,
    visitors: Vec<Visitor>,
    /// The next visitor who arrives.
    next: usize,
    /// Purchases that end at a time.
    purchases: BinaryHeap<Reverse<(Millis, usize)>>,
    /// Visitors who wait and stay.
    present: Vec<usize>,
    sweeps: Vec<Number>,
    stock: u32,
    forecast: Forecast,
}

impl<'a> Run<'a> {
    async fn new(sale: &'a Sale) -> Result<Run<'a>, Error> {
        let settings =
            Settings { token_count_to_move: sale.token_count_to_move, tick_ms: sale.tick_ms };
        let store = MemoryStore::new(1, settings).with_max_waiting(u64::MAX);
        let epoch = store.begin_term(START).await?;
        let item = ItemId::parse("sale").map_err(|error| Error::Invalid(error.to_string()))?;
        let mut rng = fastrand::Rng::with_seed(sale.seed);
        let visitors = visitors(sale, &mut rng);
        let forecast = Forecast { arrivals: visitors.len() as u32, ..Forecast::default() };
        let run = Self {
            sale,
            store,
            epoch,
            item,
            settings,
            rng,
            visitors,
            next: 0,
            purchases: BinaryHeap::new(),
            present: Vec::new(),
            sweeps: vec![Number(0); sale.policy.lanes.len() + 1],
            stock: sale.stock,
            forecast,
        };
        let policy = Policy { opening: None, ..sale.policy.clone() };
        run.put_stock(Some(policy), START).await?;
        Ok(run)
    }

    /// Runs to the end.
    async fn finish(mut self, limits: &Limits) -> Result<Forecast, Error> {
        let began = Instant::now();
        let last = START + Millis::from(self.sale.max_hours) * 3_600_000;
        let (mut now, mut rounds) = (START, 0_u64);
        loop {
            self.step(now).await?;
            if self.is_over().await? || now >= last {
                break;
            }
            (now, rounds) = (now + Millis::from(self.sale.tick_ms), rounds + 1);
            if rounds.is_multiple_of(ROUNDS_PER_CHECK) && began.elapsed() > limits.time {
                return Err(Error::TooLong(limits.time.as_secs()));
            }
        }
        self.report(now).await
    }

    /// Runs everything that happens until `now`, then the round of the leader.
    async fn step(&mut self, now: Millis) -> Result<(), Error> {
        self.set_pause(now).await?;
        self.end_purchases(now).await?;
        self.join(now).await?;
        let tick = Millis::from(self.sale.tick_ms);
        if self.begins_slice(now) {
            self.mark_present(now).await?;
        }
        self.round(now).await?;
        self.read_admissions(now).await?;
        if (now - START) / LOOK_INTERVAL_MS != (now - START + tick) / LOOK_INTERVAL_MS {
            self.look(now).await?;
        }
        if (now - START) / MINUTE_MS != (now - START + tick) / MINUTE_MS {
            self.sample().await?;
        }
        Ok(())
    }

    /// Returns whether this is the first tick of a slice of liveness.
    fn begins_slice(&self, now: Millis) -> bool {
        let tick = Millis::from(self.sale.tick_ms);
        now == START || now / SLICE_MS != (now - tick) / SLICE_MS
    }

    async fn set_pause(&self, now: Millis) -> Result<(), Error> {
        let pauses = self.pauses();
        let is_paused = pauses.iter().any(|(begin, end)| (*begin..*end).contains(&now));
        let stored = self.store.item(&self.item).await?.is_some_and(|item| item.paused);
        if stored != is_paused {
            self.store.set_paused(&self.item, is_paused, now).await?;
        }
        Ok(())
    }

    /// Ends the purchases that are complete. The product service reports the new stock afterwards.
    async fn end_purchases(&mut self, now: Millis) -> Result<(), Error> {
        let before = self.stock;
        while let Some(Reverse((at, index))) = self.purchases.peek().copied() {
            if at > now {
                break;
            }
            self.purchases.pop();
            let Some(ticket) = self.ticket(index)? else { continue };
            let ended = self.store.complete(&ticket, EndReason::Completed, now).await?;
            if ended.is_ended() && self.stock > 0 {
                self.stock -= 1;
                self.forecast.bought += 1;
                minute(&mut self.forecast.per_minute.bought, now, 1);
            }
        }
        if self.stock != before {
            self.put_stock(None, now).await?;
            if self.stock == 0 {
                self.forecast.sold_out_seconds = Some((now - START) / 1_000);
            }
        }
        Ok(())
    }

    async fn join(&mut self, now: Millis) -> Result<(), Error> {
        let first = self.next;
        while self.visitors.get(self.next).is_some_and(|visitor| visitor.arrives_at <= now) {
            self.next += 1;
        }
        for index in 0..=self.sale.policy.lanes.len() {
            let Some(lane) = Lane::numbered(index) else { continue };
            let joining: Vec<_> =
                (first..self.next).filter(|index| self.visitors[*index].lane == lane).collect();
            for chunk in joining.chunks(JOINS_PER_CALL) {
                self.join_lane(lane, chunk, now).await?;
            }
        }
        Ok(())
    }

    async fn join_lane(&mut self, lane: Lane, joining: &[usize], now: Millis) -> Result<(), Error> {
        let users = joining.iter().map(|index| user(*index)).collect::<Result<Vec<_>, _>>()?;
        let outcomes = if lane.is_standard() {
            self.store.join(&self.item, &users, &self.settings, now).await?
        } else {
            let joins: Vec<_> =
                users.into_iter().map(|user| LaneJoin { user, invitation: None }).collect();
            self.store.join_lane(&self.item, lane, &joins, &self.settings, now).await?
        };
        for (index, outcome) in joining.iter().zip(outcomes) {
            match outcome {
                JoinOutcome::Ticket { number, .. } => {
                    self.visitors[*index].number = Some(number);
                    self.forecast.joined += 1;
                    let arrived = self.visitors[*index].arrives_at;
                    minute(&mut self.forecast.per_minute.joined, arrived, 1);
                    if self.visitors[*index].stays {
                        self.present.push(*index);
                    }
                }
                JoinOutcome::Refused(_) => self.forecast.refused += 1,
            }
        }
        Ok(())
    }

    /// Marks everyone who waits and stays as seen, once per slice.
    async fn mark_present(&mut self, now: Millis) -> Result<(), Error> {
        let visitors = &self.visitors;
        self.present.retain(|index| visitors[*index].admitted_at.is_none());
        for index in 0..=self.sale.policy.lanes.len() {
            let Some(lane) = Lane::numbered(index) else { continue };
            let present = self.present.iter().map(|index| &self.visitors[*index]);
            let numbers =
                present.filter(|visitor| visitor.lane == lane).filter_map(|visitor| visitor.number);
            let pages = LivenessPage::of(numbers);
            if !pages.is_empty() {
                self.store.mark_seen(&self.item, lane, &pages, now).await?;
            }
        }
        Ok(())
    }

    /// The leader's round: expire each lane, admit from all of them, sweep each lane.
    async fn round(&mut self, now: Millis) -> Result<(), Error> {
        let expiry = self.expire(Lane::STANDARD, now).await?;
        if !expiry.active {
            return Ok(());
        }
        let mut front_is_above_base = expiry.front_is_above_base;
        for lane in (1..=expiry.lanes).filter_map(Lane::numbered) {
            front_is_above_base &= self.expire(lane, now).await?.front_is_above_base;
        }
        let Some(item) = self.store.item(&self.item).await? else { return Ok(()) };
        let state = line_state(&item, front_is_above_base, &self.settings, now);
        let serves = state == LineState::Open;
        let mut quota = if serves { line_rules::quota(&item, &self.settings) } else { 0 };
        let spacing = Millis::from(self.settings.tick_ms) * 9 / 10;
        loop {
            let admission =
                self.store.admit(self.epoch, &self.item, quota, spacing, u64::MAX, now).await?;
            quota = admission.remaining;
            if !admission.more || quota == 0 {
                break;
            }
        }
        // Marks are per slice, so that a sweep in each tick would find nothing more.
        if item.policy.absence_limit_seconds().is_some() && self.begins_slice(now) {
            for index in 0..=expiry.lanes.min(self.sweeps.len() - 1) {
                self.sweep(index, now).await?;
            }
        }
        Ok(())
    }

    async fn expire(&self, lane: Lane, now: Millis) -> Result<Expiry, Error> {
        loop {
            let expiry = self.store.expire(self.epoch, &self.item, lane, now).await?;
            if !expiry.more {
                return Ok(expiry);
            }
        }
    }

    async fn sweep(&mut self, index: usize, now: Millis) -> Result<(), Error> {
        let Some(lane) = Lane::numbered(index) else { return Ok(()) };
        for _ in 0..SWEEP_CHUNKS {
            let sweep =
                self.store.sweep(self.epoch, &self.item, lane, self.sweeps[index], now).await?;
            self.sweeps[index] = sweep.cursor;
            if sweep.cursor == Number(0) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the events of admissions and plans what the admitted visitors do.
    async fn read_admissions(&mut self, now: Millis) -> Result<(), Error> {
        let batches = self.store.outbox_read(0, None, u32::MAX).await?;
        let ids: Vec<String> = batches.iter().map(|batch| batch.id.clone()).collect();
        for event in batches.into_iter().flat_map(|batch| batch.events) {
            let TicketEvent::Admitted { user, at, .. } = event else { continue };
            let Some(index) = index_of(&user) else { continue };
            self.visitors[index].admitted_at = Some(at);
            self.forecast.admitted += 1;
            self.forecast.last_admission_seconds = Some((at - START) / 1_000);
            minute(&mut self.forecast.per_minute.admitted, now, 1);
            if self.visitors[index].buys {
                let mean = f64::from(self.sale.visitors.checkout_seconds) * 1_000.0;
                let random = -(1.0 - self.rng.f64()).ln();
                let lasts = (mean * (0.4 + 0.6 * random)) as Millis;
                self.purchases.push(Reverse((at + lasts, index)));
            }
        }
        self.store.outbox_ack(0, &ids).await?;
        Ok(())
    }

    /// Records what some visitors see as their wait.
    async fn look(&mut self, now: Millis) -> Result<(), Error> {
        let lanes = (0..=self.sale.policy.lanes.len()).filter_map(Lane::numbered);
        for lane in lanes {
            let cursor = ChangeCursor { base: 0, read: u64::MAX };
            let Some(line) = self.store.snapshot(&self.item, lane, cursor).await? else { continue };
            let state = line_state(&line.item, line.front_is_above_base(), &self.settings, now);
            let model = WaitModel::new(&line.facts(&self.settings), now);
            let model = model.filter(|_| state == LineState::Open);
            for index in 0..self.next {
                let visitor = &self.visitors[index];
                let waits = visitor.admitted_at.is_none() && visitor.number.is_some();
                if visitor.looks.is_none() || !waits || visitor.lane != lane {
                    continue;
                }
                let eta = match self.position(index, now).await? {
                    Some(position) => model.and_then(|model| model.eta(position)),
                    None => None,
                };
                self.record(index, now, eta);
            }
        }
        Ok(())
    }

    fn record(&mut self, index: usize, at: Millis, eta: Option<Eta>) {
        if let Some(looks) = &mut self.visitors[index].looks {
            looks.push(Look { at, eta });
        }
    }

    async fn position(&self, index: usize, now: Millis) -> Result<Option<u64>, Error> {
        let Some(ticket) = self.ticket(index)? else { return Ok(None) };
        let states = self.store.resolve(&[ticket], now).await?;
        Ok(match states.first() {
            Some(TicketState::Live(LiveState::Waiting { position })) => *position,
            _ => None,
        })
    }

    async fn sample(&mut self) -> Result<(), Error> {
        let counts = self.store.counts(std::slice::from_ref(&self.item)).await?;
        if let Some(counts) = counts.first() {
            let per_minute = &mut self.forecast.per_minute;
            per_minute.waiting.push((counts.waiting + counts.returning) as u32);
            per_minute.entered.push(counts.entered as u32);
        }
        Ok(())
    }

    /// Returns whether nothing can happen any more: all have arrived, and no visitor waits or has an entry, or
    /// nothing is left to sell.
    async fn is_over(&mut self) -> Result<bool, Error> {
        if self.next < self.visitors.len() && self.stock > 0 {
            return Ok(false);
        }
        if self.stock == 0 {
            // Those who arrive later are refused.
            self.forecast.refused += (self.visitors.len() - self.next) as u32;
            return Ok(true);
        }
        let counts = self.store.counts(std::slice::from_ref(&self.item)).await?;
        Ok(counts
            .first()
            .is_none_or(|line| line.waiting + line.returning + line.missed + line.entered == 0))
    }

    async fn report(mut self, now: Millis) -> Result<Forecast, Error> {
        let counts = self.store.counts(std::slice::from_ref(&self.item)).await?;
        let (mut forecast, visitors) = (self.forecast, &self.visitors);
        if let Some(line) = counts.first() {
            (forecast.expired, forecast.abandoned) =
                (line.totals.expired as u32, line.totals.abandoned as u32);
            let cleared = line.waiting + line.returning == 0;
            forecast.cleared_seconds = forecast.last_admission_seconds.filter(|_| cleared);
        }
        let admitted = visitors.iter().filter_map(|visitor| Some((visitor, visitor.admitted_at?)));
        let wait =
            |(visitor, at): (&Visitor, Millis)| at.saturating_sub(visitor.arrives_at) / 1_000;
        forecast.waits = Waits::new(admitted.map(wait).collect());
        let stayed = |visitor: &&Visitor| visitor.stays && visitor.admitted_at.is_none();
        forecast.without_turn = visitors.iter().filter(stayed).count() as u32;
        forecast.unsold = self.stock;
        forecast.seconds = (now - START) / 1_000;
        let pauses: Vec<_> = {
            let pause = |pause: &crate::Pause| pause.times();
            self.sale.pauses.iter().map(pause).collect()
        };
        let mut score = EstimateScore::default();
        for visitor in &mut self.visitors {
            if let Some((looks, at)) = visitor.looks.take().zip(visitor.admitted_at) {
                score.add(&looks, at, &pauses);
            }
        }
        forecast.estimates = score;
        pad(&mut forecast.per_minute);
        Ok(forecast)
    }

    fn pauses(&self) -> Vec<(Millis, Millis)> {
        self.sale.pauses.iter().map(crate::Pause::times).collect()
    }

    fn ticket(&self, index: usize) -> Result<Option<Ticket>, Error> {
        let visitor = &self.visitors[index];
        let Some(number) = visitor.number else { return Ok(None) };
        let ticket = Ticket::new(self.item.clone(), user(index)?, number);
        Ok(Some(Ticket { lane: visitor.lane, ..ticket }))
    }

    async fn put_stock(&self, policy: Option<Policy>, now: Millis) -> Result<(), Error> {
        let name = ItemName::parse("Sale").map_err(|error| Error::Invalid(error.to_string()))?;
        let change = ItemChange {
            id: self.item.clone(),
            name,
            stock: self.stock,
            enabled: true,
            version: None,
            policy,
        };
        self.store.put_item(&change, now).await?;
        Ok(())
    }
}

impl crate::Pause {
    /// Returns when the pause begins and ends.
    fn times(&self) -> (Millis, Millis) {
        let begin = START + Millis::from(self.at_seconds) * 1_000;
        (begin, begin + Millis::from(self.seconds) * 1_000)
    }
}

/// Returns the visitors in the order of their arrival.
fn visitors(sale: &Sale, rng: &mut fastrand::Rng) -> Vec<Visitor> {
    let times = sale.arrivals.times(rng);
    let every = times.len().div_ceil(LOOKERS).max(1);
    let behaviour = sale.visitors;
    let visitor = |(index, at): (usize, Millis)| {
        let stays = rng.u32(..100) >= behaviour.no_show_percent;
        let mut percent = rng.u32(..100);
        let mut lane = Lane::STANDARD;
        for (name, part) in &sale.lane_percent {
            if percent < *part {
                lane = lane::find(&sale.policy.lanes, name).unwrap_or(Lane::STANDARD);
                break;
            }
            percent -= part;
        }
        Visitor {
            lane,
            arrives_at: START + at,
            stays,
            buys: rng.u32(..100) < behaviour.buy_percent && stays,
            number: None,
            admitted_at: None,
            looks: (index.is_multiple_of(every) && stays).then(Vec::new),
        }
    };
    times.into_iter().enumerate().map(visitor).collect()
}

fn user(index: usize) -> Result<UserId, Error> {
    UserId::parse(&format!("u{index}")).map_err(|error| Error::Invalid(error.to_string()))
}

fn index_of(user: &UserId) -> Option<usize> {
    user.as_str().strip_prefix('u')?.parse().ok()
}

/// Adds to the minute of a time.
fn minute(figure: &mut Vec<u32>, now: Millis, count: u32) {
    let index = ((now - START) / MINUTE_MS) as usize;
    if figure.len() <= index {
        figure.resize(index + 1, 0);
    }
    figure[index] += count;
}

/// Gives all figures the same length.
fn pad(per_minute: &mut PerMinute) {
    let PerMinute { joined, admitted, bought, waiting, entered } = per_minute;
    let figures = [joined, admitted, bought, waiting, entered];
    let longest = figures.iter().map(|figure| figure.len()).max().unwrap_or(0);
    for figure in figures {
        figure.resize(longest, 0);
    }
}
