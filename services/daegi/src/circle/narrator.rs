//! What a person sees who watches the circle: a calm line every other second, and a sentence for
//! every turn of the sale.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use daegi_neighbours::crowd::Line;
use daegi_neighbours::order::book::Counts;
use daegi_neighbours::product::{Phase, Progress};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::View;

const PACE: Duration = Duration::from_secs(2);

/// The last words, under the last sentence.
const END: &str = "\n       the sale is over, the waiting room is still open; Ctrl-C ends it";

/// Tells how the circle moves.
pub(super) struct Narrator {
    view: View,
    began: Instant,
    phase: Phase,
    waiting: u64,
    last: String,
}

/// The circle at one moment.
struct Status {
    line: Line,
    counts: Counts,
    stock: u32,
}

impl Narrator {
    pub(super) fn new(view: View) -> Self {
        let (began, phase) = (Instant::now(), Phase::Planned);
        Self { view, began, phase, waiting: 0, last: String::new() }
    }

    pub(super) async fn tell(mut self) {
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                changed = self.view.sale.changed() => match changed {
                    Ok(()) => self.turn(),
                    Err(_) => return,
                },
                _ = pace.tick() => self.status().await,
            }
        }
    }

    /// A sentence, if the sale took a turn.
    fn turn(&mut self) {
        let sale = *self.view.sale.borrow_and_update();
        if sale.phase != self.phase {
            self.phase = sale.phase;
            self.say(&self.sentence(&sale));
        }
    }

    fn sentence(&self, sale: &Progress) -> String {
        let (Progress { stock, sold, .. }, waiting) = (sale, self.waiting);
        match (sale.phase, sale.restocked > 0) {
            (Phase::Planned, _) => "the sale is planned".to_owned(),
            (Phase::OnSale, false) => format!("on sale: {stock} seats, people come"),
            (Phase::SoldOut, false) => {
                format!("sold out: nobody is let in, {waiting} people keep their places in line")
            }
            (Phase::OnSale, true) => {
                format!("restocked: {stock} more seats, the line goes on where it stopped")
            }
            (Phase::SoldOut, true) => format!("sold out again, {waiting} people still wait"),
            (Phase::Closed, _) => {
                let (given_up, late) = (self.view.tally.given_up(), self.view.tally.turned_away());
                format!(
                    "closed: {sold} seats sold; {waiting} people in line are sent home, {given_up} \
                     gave up before, {late} came too late{END}"
                )
            }
        }
    }

    /// A line, unless nothing has moved since the last one.
    async fn status(&mut self) {
        if matches!(self.phase, Phase::Planned | Phase::Closed) {
            return;
        }
        let Ok(line) = self.view.onlooker.line().await else { return };
        self.waiting = line.waiting_count;
        let counts = self.view.desk.book().counts();
        let stock = self.view.sale.borrow().stock;
        let status = Status { line, counts, stock }.to_string();
        if status != self.last {
            self.say(&status);
            self.last = status;
        }
    }

    /// With the time since the beginning. A closed stdout must not stop a waiting room.
    fn say(&self, text: &str) {
        let seconds = self.began.elapsed().as_secs();
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        let _ = writeln!(std::io::stdout().lock(), "{minutes:02}:{seconds:02}  {text}");
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { waiting_count, entered_count, .. } = self.line;
        let Counts { let_in, orders, cancelled } = self.counts;
        write!(f, "waiting {waiting_count:>3} · inside {entered_count:>2} · let in {let_in:>3}")?;
        write!(f, " · orders {orders:>3} ({cancelled} cancelled) · stock {:>3}", self.stock)
    }
}
