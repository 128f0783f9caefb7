//! Simulates a sale: "what if".

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use daegi_runtime::http::JsonBody;
use daegi_simulation::{Arrivals, Error, Forecast, Limits, Pause, Sale, simulate};
use serde_json::{Value, json};

use super::{AdminError, AdminResult, AdminState};

/// What one call may use. Its thread takes a core that the leader may need.
const LIMITS: Limits = Limits { arrivals: 50_000, time: Duration::from_secs(10) };

/// `POST …/simulate`. One simulation runs at a time; it runs on a thread of its own and changes nothing.
pub(super) async fn run(
    State(admin): State<Arc<AdminState>>,
    JsonBody(sale): JsonBody<Sale>,
) -> AdminResult<Json<Forecast>> {
    let Ok(running) = admin.simulations.clone().try_lock_owned() else {
        return Err(AdminError::SimulationRuns);
    };
    let run = tokio::task::spawn_blocking(move || {
        // Held by the thread, because a caller who disconnects does not end it.
        let _running = running;
        simulate(&sale, &LIMITS)
    });
    match run.await {
        Ok(Ok(forecast)) => Ok(Json(forecast)),
        Ok(Err(error @ (Error::Invalid(_) | Error::TooLong(_)))) => {
            Err(AdminError::Invalid(error.to_string()))
        }
        Ok(Err(Error::Store(error))) => Err(AdminError::Store(error)),
        Err(_) => Err(AdminError::SimulationFailed),
    }
}

/// A sale, for the published schema.
pub(super) fn sale_example() -> Value {
    let arrivals = Arrivals::Recorded { per_minute: vec![2_400, 1_300, 800, 500] };
    let pauses = vec![Pause { at_seconds: 300, seconds: 60 }];
    let sale = Sale { pauses, ..Sale::new(arrivals, 1_000) };
    let mut example = json!(sale);
    example["policy"] = json!({ "maxActive": 200, "tokensPerTick": 20 });
    example
}
