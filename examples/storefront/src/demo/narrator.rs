//! Prints the progress of the demo: a status line every 2 s and a sentence for each phase of the sale.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::DemoHandles;
use crate::load::Line;
use crate::order::ledger::Counts;
use crate::product::{Phase, Progress};

const STATUS_INTERVAL: Duration = Duration::from_secs(2);

/// Printed after the sale has closed.
const END: &str = "\n       the sale is over and the waiting room stays open; Ctrl-C stops it";

pub(super) struct Narrator {
    handles: DemoHandles,
    began: Instant,
    phase: Phase,
    waiting: u64,
    last: String,
}

/// One status line.
struct Status {
    line: Line,
    counts: Counts,
    stock: u32,
}

impl Narrator {
    pub(super) fn new(handles: DemoHandles) -> Self {
        let (began, phase) = (Instant::now(), Phase::Planned);
        Self { handles, began, phase, waiting: 0, last: String::new() }
    }

    pub(super) async fn run(mut self) {
        let mut status_interval = interval(STATUS_INTERVAL);
        status_interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                changed = self.handles.sale.changed() => match changed {
                    Ok(()) => self.report_phase(),
                    Err(_) => return,
                },
                _ = status_interval.tick() => self.status().await,
            }
        }
    }

    /// Prints a sentence if the phase of the sale has changed.
    fn report_phase(&mut self) {
        let sale = *self.handles.sale.borrow_and_update();
        if sale.phase != self.phase {
            self.phase = sale.phase;
            self.print(&self.sentence(&sale));
        }
    }

    fn sentence(&self, sale: &Progress) -> String {
        let (Progress { stock, sold, .. }, waiting) = (sale, self.waiting);
        match (sale.phase, sale.restocked > 0) {
            (Phase::Planned, _) => "the sale is planned".to_owned(),
            (Phase::OnSale, false) => format!("on sale: {stock} seats, visitors join the line"),
            (Phase::SoldOut, false) => {
                format!("sold out: admission stops, {waiting} visitors keep their positions")
            }
            (Phase::OnSale, true) => {
                format!("restocked: {stock} more seats, admission continues where it stopped")
            }
            (Phase::SoldOut, true) => format!("sold out again: {waiting} visitors still wait"),
            (Phase::Closed, _) => {
                let (left, refused) =
                    (self.handles.outcomes.given_up(), self.handles.outcomes.turned_away());
                format!(
                    "closed: {sold} seats sold; {waiting} visitors in the line get none, {left} left \
                     before, {refused} were refused{END}"
                )
            }
        }
    }

    /// Prints a status line unless it equals the last one.
    async fn status(&mut self) {
        if matches!(self.phase, Phase::Planned | Phase::Closed) {
            return;
        }
        let Ok(line) = self.handles.line_client.line().await else { return };
        self.waiting = line.waiting_count;
        let counts = self.handles.checkout.ledger().counts();
        let stock = self.handles.sale.borrow().stock;
        let status = Status { line, counts, stock }.to_string();
        if status != self.last {
            self.print(&status);
            self.last = status;
        }
    }

    /// Prints the text with the time since the start. Ignores errors: a closed stdout must not stop the process.
    fn print(&self, text: &str) {
        let seconds = self.began.elapsed().as_secs();
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        let _ = writeln!(std::io::stdout().lock(), "{minutes:02}:{seconds:02}  {text}");
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { waiting_count, entered_count, .. } = self.line;
        let Counts { admitted, orders, cancelled } = self.counts;
        write!(
            f,
            "waiting {waiting_count:>3} · entered {entered_count:>2} · admitted {admitted:>3}"
        )?;
        write!(f, " · orders {orders:>3} ({cancelled} cancelled) · stock {:>3}", self.stock)
    }
}
