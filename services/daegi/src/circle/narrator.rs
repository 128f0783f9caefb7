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

/// Tells how the circle moves.
pub(super) struct Narrator {
    view: View,
    began: Instant,
    last: String,
    phase: Phase,
}

/// The circle at one moment.
struct Status {
    line: Line,
    counts: Counts,
    stock: u32,
}

impl Narrator {
    pub(super) fn new(view: View) -> Self {
        Self { view, began: Instant::now(), last: String::new(), phase: Phase::Planned }
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
        let tally = &self.view.tally;
        match sale.phase {
            Phase::Planned => "the sale is planned".to_owned(),
            Phase::OnSale if sale.restocked => {
                format!("restocked: {} more seats, the line goes on where it stopped", sale.stock)
            }
            Phase::OnSale => format!("on sale: {} seats, people come", sale.stock),
            Phase::SoldOut if !sale.restocked => {
                "sold out: nobody is let in, everybody in line keeps their place".to_owned()
            }
            Phase::SoldOut => "sold out again, and there are no more".to_owned(),
            Phase::Closed => format!(
                "closed: {} seats sold; {} people left the line, {} came too late. \
                 daegi runs on, Ctrl-C ends it",
                sale.sold,
                tally.given_up(),
                tally.turned_away()
            ),
        }
    }

    /// A line, unless nothing has moved since the last one.
    async fn status(&mut self) {
        let Ok(line) = self.view.onlooker.line().await else { return };
        let counts = self.view.desk.book().counts();
        let stock = self.view.sale.borrow().stock;
        let status = Status { line, counts, stock }.to_string();
        if self.phase != Phase::Planned && status != self.last {
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
