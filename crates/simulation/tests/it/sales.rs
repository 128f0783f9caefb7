//! Forecasts of sales whose outcome is known.

use std::time::{Duration, Instant};

use daegi_domain::Policy;
use daegi_simulation::{Arrivals, Error, Forecast, Limits, Sale, Shape, Visitors, simulate};

fn invented(total: u32, minutes: u32, shape: Shape) -> Arrivals {
    Arrivals::Invented { total, minutes, shape }
}

fn run(sale: &Sale) -> Forecast {
    simulate(sale, &Limits::default()).unwrap()
}

#[test]
fn a_sale_clears_at_its_rate() {
    let everyone = Visitors { buy_percent: 100, no_show_percent: 0, checkout_seconds: 30 };
    let policy = Policy { tokens_per_tick: Some(5), grace_seconds: 0, ..Policy::default() };
    let forecast = run(&Sale {
        policy,
        visitors: everyone,
        ..Sale::new(Arrivals::Recorded { per_minute: vec![3_000] }, 5_000)
    });
    assert_eq!((forecast.admitted, forecast.refused, forecast.without_turn), (3_000, 0, 0));
    let last = forecast.last_admission_seconds.unwrap();
    assert!((598..=610).contains(&last), "3,000 visitors at 5 per second: {last}");
    assert_eq!(forecast.cleared_seconds, Some(last));
    assert_eq!(forecast.bought + forecast.expired, 3_000);
    assert!(forecast.sold_out_seconds.is_none());
    let per_minute = &forecast.per_minute;
    assert_eq!(per_minute.joined[0], 3_000);
    assert!(per_minute.admitted[1..9].iter().all(|admitted| *admitted == 300), "{per_minute:?}");
}

#[test]
fn a_sale_sells_out_and_the_others_get_nothing() {
    let visitors = Visitors { buy_percent: 100, no_show_percent: 20, checkout_seconds: 20 };
    let forecast = run(&Sale { visitors, ..Sale::new(invented(2_000, 5, Shape::Opening), 500) });
    assert_eq!((forecast.bought, forecast.unsold), (500, 0));
    assert!(forecast.sold_out_seconds.is_some());
    assert_eq!(forecast.joined + forecast.refused, 2_000);
    let waited = forecast.without_turn + forecast.bought;
    assert!((1_500..=1_700).contains(&waited), "80 % stay: {forecast:?}");
}

#[test]
fn the_same_seed_has_the_same_outcome_and_another_seed_another_one() {
    let visitors = Visitors { no_show_percent: 10, ..Visitors::default() };
    let sale = Sale { visitors, ..Sale::new(invented(2_000, 5, Shape::Bursts), 900) };
    assert_eq!(run(&sale), run(&sale));
    assert_ne!(run(&sale), run(&Sale { seed: 1, ..sale }));
}

#[test]
fn an_hour_takes_seconds() {
    let sale = Sale::new(invented(10_000, 60, Shape::Opening), 20_000);
    let began = Instant::now();
    let forecast = run(&sale);
    let speed = forecast.seconds as f64 / began.elapsed().as_secs_f64();
    eprintln!("10,000 visitors in an hour: {speed:.0} times faster than real time");
    // Unoptimised, and on a busy machine.
    assert!(forecast.seconds >= 3_600 && speed > 20.0, "{speed:.0} times");
}

#[test]
fn what_is_not_allowed_is_refused_with_its_field() {
    let sale = |json: &str| -> Result<Forecast, Error> {
        let sale: Sale =
            serde_json::from_str(json).map_err(|error| Error::Invalid(error.to_string()))?;
        simulate(&sale, &Limits { arrivals: 1_000, time: Duration::from_secs(5) })
    };
    for (bad, says) in [
        (r#"{"arrivals":{"perMinute":[1001]},"stock":1}"#, "1001"),
        (r#"{"arrivals":{"perMinute":[]},"stock":1}"#, "0 minutes"),
        (r#"{"arrivals":{"total":1,"minutes":1},"stock":1,"tickMs":1}"#, "tickMs"),
        (
            r#"{"arrivals":{"total":1,"minutes":1},"stock":1,"visitors":{"buyPercent":101}}"#,
            "buyPercent",
        ),
        (
            r#"{"arrivals":{"total":1,"minutes":1},"stock":1,"policy":{"graceSeconds":3}}"#,
            "graceSeconds",
        ),
        (r#"{"arrivals":{"total":1,"minutes":1},"stock":1,"lanePercent":{"vip":10}}"#, "vip"),
        (r#"{"arrivals":{"total":1,"minutes":1},"stock":1,"speed":1}"#, "speed"),
    ] {
        let error = sale(bad).unwrap_err().to_string();
        assert!(error.contains(says), "{bad}: {error}");
    }
    assert_eq!(sale(r#"{"arrivals":{"total":1,"minutes":1},"stock":1}"#).unwrap().admitted, 1);
}

#[test]
fn a_run_that_takes_too_long_ends_with_an_error() {
    let sale = Sale::new(invented(1_000, 600, Shape::Steady), 10);
    let limits = Limits { arrivals: 1_000, time: Duration::ZERO };
    assert!(matches!(simulate(&sale, &limits), Err(Error::TooLong(0))));
}
