//! When a core stood still.
//!
//! A machine that others use, too, takes a core away now and then, and whatever runs there is late. A
//! thread of the highest priority that wakes there all the time tells when that was. No script holds
//! it up: the kernel takes the core from the script at once. When it is late, the core did not run, or the
//! kernel did not let go of it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};

use super::slow_log::Slow;
use crate::report::progress;

/// How often the thread wakes.
const BEAT: Duration = Duration::from_micros(250);
/// A thread that is less late than this is just awake, in seconds.
const LATE: f64 = 0.000_25;
/// Redis asks for the second in a way that may be a tick of the kernel behind.
const TICK: f64 = 0.01;

/// Watches the core on which it was started.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Pause>>,
}

/// From when to when nothing ran, in seconds of the time of day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    began: f64,
    ended: f64,
}

impl Watch {
    /// Of a core that whoever calls this does not leave. Where the thread may not come before others it
    /// would tell of pauses that scripts made, so that there is none.
    pub(super) fn start() -> anyhow::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let (is_over, (ready, starts)) = (over.clone(), std::sync::mpsc::channel());
        let thread = thread::spawn(move || {
            let first = comes_first();
            let watches = first.is_ok();
            // Nobody listens only if the bench is at its end.
            ready.send(first).ok();
            if watches { pauses(&is_over) } else { Vec::new() }
        });
        if let Err(error) = starts.recv().context("no thread")? {
            progress(&format!("NOBODY TELLS WHEN THE CORE STANDS STILL: {error:#}"));
        }
        Ok(Self { over, thread })
    }

    /// The pauses since it was started.
    pub(super) fn end(self) -> anyhow::Result<Vec<Pause>> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the thread that watches a core panicked"))
    }
}

/// Has the kernel prefer the calling thread to everything else.
fn comes_first() -> anyhow::Result<()> {
    let thread = std::fs::read_link("/proc/thread-self").context("no thread's number")?;
    let number = thread.file_name().map(Path::new).context("no thread's number")?;
    let mut preferred = Command::new("chrt");
    preferred.args(["--fifo", "--pid", "50"]).arg(number);
    let status = preferred.stdout(Stdio::null()).stderr(Stdio::null()).status().context("chrt")?;
    if status.success() { Ok(()) } else { Err(anyhow!("chrt may not do it")) }
}

fn pauses(over: &AtomicBool) -> Vec<Pause> {
    let (mut pauses, mut last) = (Vec::new(), Instant::now());
    while !over.load(Ordering::Relaxed) {
        thread::sleep(BEAT);
        // By the clock that never jumps: a jump is no pause.
        let late = last.elapsed().saturating_sub(BEAT).as_secs_f64();
        last = Instant::now();
        if late > LATE {
            let ended = time_of_day();
            pauses.push(Pause { began: ended - late, ended });
        }
    }
    pauses
}

fn time_of_day() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// What calls took while their core ran, in milliseconds. Redis tells the second in which a call ended. So
/// those pauses are taken off that may be in one call, as they ended by then and lie close enough together;
/// none twice.
pub(super) fn own_times(slow: &[Slow], mut pauses: Vec<Pause>) -> Vec<f64> {
    let mut longest_first: Vec<&Slow> = slow.iter().collect();
    longest_first.sort_by(|one, other| other.milliseconds.total_cmp(&one.milliseconds));
    longest_first
        .into_iter()
        .map(|call| {
            let within = most_within(call, &pauses);
            let stood: f64 = within.iter().map(|pause| pause.ended - pause.began).sum();
            pauses.retain(|pause| within.iter().all(|taken| taken.ended != pause.ended));
            call.milliseconds - stood * 1e3
        })
        .collect()
}

/// Those that make up the most of a call.
fn most_within(call: &Slow, pauses: &[Pause]) -> Vec<Pause> {
    // The thread sees the end of a pause when it wakes, which may be after the end of the call.
    let (length, beat) = (call.milliseconds / 1e3, BEAT.as_secs_f64());
    let (from, to) = (call.second - length, call.second + 1.0 + TICK + beat);
    let near = pauses.iter().filter(|pause| pause.ended > from && pause.ended < to);
    let near: Vec<Pause> = near.copied().collect();
    let together = near.iter().map(|first| {
        let after = near.iter().filter(|pause| pause.began >= first.began);
        after.filter(|pause| pause.ended - first.began <= length + beat).copied().collect()
    });
    let stood = |pauses: &Vec<Pause>| -> f64 { pauses.iter().map(|it| it.ended - it.began).sum() };
    together.max_by(|one, other| stood(one).total_cmp(&stood(other))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(second: f64, milliseconds: f64) -> Slow {
        Slow { second, milliseconds }
    }

    fn pause(began: f64, milliseconds: f64) -> Pause {
        Pause { began, ended: began + milliseconds / 1e3 }
    }

    fn own(calls: &[Slow], pauses: &[Pause]) -> Vec<i64> {
        own_times(calls, pauses.to_vec()).into_iter().map(|own| own.round() as i64).collect()
    }

    #[test]
    fn a_call_is_not_blamed_for_a_pause() {
        assert_eq!(own(&[call(7.0, 12.0)], &[pause(7.3, 11.0)]), [1]);
        assert_eq!(own(&[call(7.0, 12.0)], &[pause(7.3, 5.0), pause(7.306, 5.0)]), [2]);
    }

    #[test]
    fn what_no_pause_tells_is_the_calls_own() {
        assert_eq!(own(&[call(7.0, 12.0)], &[]), [12]);
        assert_eq!(own(&[call(7.0, 12.0)], &[pause(5.5, 11.0), pause(8.5, 11.0)]), [12]);
        // Longer than the call, so that it was not in it.
        assert_eq!(own(&[call(7.0, 12.0)], &[pause(7.3, 20.0)]), [12]);
        // Too far from each other to be in one call.
        assert_eq!(own(&[call(7.0, 12.0)], &[pause(7.3, 5.0), pause(7.5, 5.0)]), [7]);
    }

    #[test]
    fn a_pause_excuses_one_call() {
        let calls = [call(7.0, 9.0), call(7.0, 12.0)];
        assert_eq!(own(&calls, &[pause(7.3, 8.0)]), [4, 9]);
        assert_eq!(own(&calls, &[pause(7.3, 8.0), pause(7.5, 8.0)]), [4, 1]);
    }

    #[test]
    fn a_pause_at_the_turn_of_a_second_counts() {
        assert_eq!(own(&[call(7.0, 12.0)], &[pause(6.99, 9.0)]), [3]);
        assert_eq!(own(&[call(7.0, 12.0)], &[pause(7.995, 9.0)]), [3]);
    }
}
