//! Signals of tickets, on both stores.

use daegi_domain::{Lane, Number, Signal, SignalCounts, Signals};
use daegi_store::{MAX_SCORED_TICKETS, SIGNAL_RETENTION_MS};

use crate::support::{START, both, item};

const NONE: Signals = Signals::NONE;

#[tokio::test]
async fn a_ticket_counts_once_per_signal_whichever_pods_report_it() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let id = item("concert");
        let (page, source) = (NONE.with(Signal::NoPage), NONE.with(Signal::Source));
        let of = |lane, number, signals| (Lane::numbered(lane).unwrap(), Number(number), signals);
        let first =
            [of(0, 7, page), of(0, 7, page), of(1, 7, page), of(0, 8, NONE.with(Signal::Honeypot))];
        store.add_signals(&id, &first, START).await.unwrap();
        store.add_signals(&id, &[of(0, 7, page.with(Signal::Source))], START).await.unwrap();
        store.add_signals(&id, &[of(0, 9, source)], START).await.unwrap();
        let expected = SignalCounts {
            automated: 2,
            source: 2,
            no_page: 2,
            honeypot: 1,
            ..SignalCounts::default()
        };
        assert_eq!(store.signal_counts(&id, START).await.unwrap(), expected, "{name}");
        let other = store.signal_counts(&item("drop"), START).await.unwrap();
        assert_eq!(other, SignalCounts::default(), "{name}");
    }
}

#[tokio::test]
async fn counts_are_bounded_and_end_with_their_retention() {
    let (stores, _server) = both().await;
    for (name, store) in stores {
        let id = item("concert");
        let signals = NONE.with(Signal::NoPage);
        let ticket = |number: u32| (Lane::STANDARD, Number(number.into()), signals);
        let tickets: Vec<_> = (0..MAX_SCORED_TICKETS + 3).map(ticket).collect();
        for batch in tickets.chunks(5_000) {
            store.add_signals(&id, batch, START).await.unwrap();
        }
        let counts = store.signal_counts(&id, START).await.unwrap();
        let expected = SignalCounts {
            no_page: u64::from(MAX_SCORED_TICKETS),
            uncounted: 3,
            ..SignalCounts::default()
        };
        assert_eq!(counts, expected, "{name}");
        let known = (Lane::STANDARD, Number(5), NONE.with(Signal::Source));
        store.add_signals(&id, &[known], START).await.unwrap();
        let last = START + SIGNAL_RETENTION_MS - 1;
        let counts = store.signal_counts(&id, last).await.unwrap();
        assert_eq!(
            (counts.automated, counts.source),
            (1, 1),
            "{name}: a known ticket still counts"
        );
        let ended = store.signal_counts(&id, last + 1).await.unwrap();
        assert_eq!(ended, SignalCounts::default(), "{name}");
        store.add_signals(&id, &[ticket(1)], last + 1).await.unwrap();
        let again = store.signal_counts(&id, last + 1).await.unwrap();
        assert_eq!((again.no_page, again.uncounted), (1, 0), "{name}");
    }
}
