//! Measures what a challenge costs the api: `cargo run --release -p daegi-domain --example challenge_cost`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "an example")]

use std::hint::black_box;
use std::time::Instant;

use daegi_domain::challenge::solve;
use daegi_domain::{Challenge, ItemId, Millis, TicketKeys, UserId};

const NOW: Millis = 1_800_000_000_000;
/// Calls of one round, of which the fastest counts: other work on the machine only adds time.
const CALLS: u32 = 50_000;
const ROUNDS: u32 = 10;

fn main() {
    let keys = TicketKeys::generate();
    let (item, user) = (ItemId::parse("concert").unwrap(), UserId::parse("kim").unwrap());
    let challenge = Challenge { issued_at: NOW, difficulty: 18 };
    let text = keys.challenge(&item, &user, challenge);
    let solution = solve(&text, challenge.difficulty).unwrap();
    let verify = |solution: &str, now| keys.verify_solution(&item, &user, black_box(solution), now);
    measure("issue a challenge", || keys.challenge(&item, black_box(&user), challenge).len());
    measure("verify a solution", || verify(&solution, NOW).is_ok());
    let (wrong, forged) = (format!("{text}:0"), solution.replacen('0', "1", 1));
    measure("refuse a wrong nonce", || verify(&wrong, NOW).is_ok());
    measure("refuse an expired solution", || verify(&solution, NOW + 200_000).is_ok());
    measure("refuse a forged challenge", || verify(&forged, NOW).is_ok());
    let nonces = 20;
    let began = Instant::now();
    for second in 0..nonces {
        let challenge = Challenge { issued_at: NOW + second, difficulty: 18 };
        black_box(solve(&keys.challenge(&item, &user, challenge), 18));
    }
    println!("solve 18 bits: {:?} on average", began.elapsed() / nonces as u32);
}

fn measure<T>(what: &str, mut run: impl FnMut() -> T) {
    let mut round = || {
        let began = Instant::now();
        (0..CALLS).for_each(|_| drop(black_box(run())));
        began.elapsed() / CALLS
    };
    let fastest = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
    println!("{what}: {fastest:?}");
}
