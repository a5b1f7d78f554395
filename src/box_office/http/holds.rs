//! Holds: taken, and given back.

use std::{collections::HashSet, sync::Arc};

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;

use super::{
    PIN, body,
    events::known,
    forms, json,
    orders::{key, visit},
    problem::Problem,
};
use crate::box_office::{
    best::BestWish,
    ids::HoldId,
    inventory::{Acted, Held, Tickets},
    office::{Office, OfficeError},
    views::HoldView,
};

/// A UUID has as many characters.
const LEAST_SECRET_KEY: usize = 36;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    seats: Option<Vec<String>>,
    quantity: Option<u32>,
    best_available: Option<BestWish>,
}

impl Wish {
    /// The box office chooses the seats.
    pub fn best(wish: BestWish) -> Self {
        Self { seats: None, quantity: None, best_available: Some(wish) }
    }

    /// So many tickets of general admission.
    pub fn general(quantity: u32) -> Self {
        Self { seats: None, quantity: Some(quantity), best_available: None }
    }
}

enum Wanted {
    These(Tickets),
    Best(BestWish),
}

/// `POST /events/{event}/holds`.
pub async fn create(
    State(office): State<Arc<Office>>,
    Path(event): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    known(&office, &event)?;
    if forms::is_form(&headers) {
        return forms::hold(&office, &headers, body).await;
    }
    let visit = visit(&headers);
    let key = key_of_hold(&headers, visit.as_deref())?;
    let wish = body::json(&headers, body).await?;
    let view = take(&office, wish, visit.as_deref(), key.as_deref()).await?;
    let text = serde_json::to_vec(&view).map_err(|error| OfficeError::Defect(error.to_string()))?;
    let mut response = json(StatusCode::CREATED, text);
    response.headers_mut().insert(PIN, view.expires_in_seconds.into());
    Ok(response)
}

/// Takes a hold, or says why not.
pub async fn take(office: &Office, wish: Wish, visit: Option<&str>, key: Option<&str>) -> Result<HoldView, Problem> {
    let held = match check(office, wish)? {
        Wanted::These(tickets) => office.hold(tickets, visit, key).await?,
        Wanted::Best(wish) => office.hold_best(&wish, visit, key).await?,
    };
    match held {
        Ok(view) => Ok(view),
        Err(Held::NotEnough { free }) => {
            let detail = match free {
                0 => "None is free now. What others hold may come back.".to_owned(),
                1 => "Only one ticket is free now.".to_owned(),
                _ => format!("Only {free} tickets are free now."),
            };
            Err(Problem::conflict("not-enough", detail).with("free", free))
        }
        Err(Held::Apart { free }) => {
            let detail = "So many seats are not free side by side. Take fewer, or seats apart from each other.";
            Err(Problem::conflict("not-together", detail).with("free", free))
        }
        Err(Held::Contended) => {
            let detail = "Others were faster again and again, and seats are still free. Try the same once more.";
            Err(Problem::conflict("contended", detail).retry_after(1))
        }
        Err(Held::Taken(taken)) => {
            let detail = format!("Taken by now: {}. Nothing is held for you; choose others.", taken.join(", "));
            Err(Problem::conflict("taken", detail).with("taken", taken))
        }
        Err(Held::Over) => Err(gone(
            "What was held under this Idempotency-Key lapsed, was given back or became an order. Use a new key.",
        )),
        Err(Held::OtherWish) => {
            let detail = "This Idempotency-Key came with another wish before. Use a new key for a new wish.";
            Err(Problem::unprocessable("key-reused", detail))
        }
        Err(Held::Until { .. }) => Err(OfficeError::Defect("held, and yet not".to_owned()).into()),
    }
}

/// The key, if there is one: whoever knows it gets the hold. In a visit it is the visitor's own; without one it must be
/// as hard to guess as the hold's name.
fn key_of_hold(headers: &HeaderMap, visit: Option<&str>) -> Result<Option<String>, Problem> {
    if !headers.contains_key("idempotency-key") {
        return Ok(None);
    }
    let key = key(headers)?;
    if visit.is_none() && key.len() < LEAST_SECRET_KEY {
        let detail = "Without a gateway in front the Idempotency-Key of a hold is a secret: use a random UUID.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "idempotency-key", detail));
    }
    Ok(Some(key))
}

fn check(office: &Office, wish: Wish) -> Result<Wanted, Problem> {
    match (wish.seats, wish.quantity, wish.best_available) {
        (Some(seats), None, None) => {
            let quantity = u32::try_from(seats.len()).unwrap_or(u32::MAX);
            check_quantity(office, quantity)?;
            check_seats(office, &seats)?;
            Ok(Wanted::These(Tickets { seats, quantity }))
        }
        (None, Some(quantity), None) => {
            check_quantity(office, quantity)?;
            Ok(Wanted::These(Tickets { seats: Vec::new(), quantity }))
        }
        (None, None, Some(wish)) => {
            check_quantity(office, wish.quantity)?;
            let rows: HashSet<&str> = office.plan.rows().map(|(row, _)| row).collect();
            let unknown: Vec<String> =
                wish.rows.iter().flatten().filter(|row| !rows.contains(row.as_str())).cloned().collect();
            if !unknown.is_empty() {
                let problem = Problem::unprocessable("unknown-rows", "There are no such rows.");
                return Err(problem.with("unknown", unknown));
            }
            Ok(Wanted::Best(wish))
        }
        _ => {
            let detail = "Send one of \"seats\", \"quantity\" and \"best_available\".";
            Err(Problem::unprocessable("wish-unclear", detail))
        }
    }
}

fn check_quantity(office: &Office, quantity: u32) -> Result<(), Problem> {
    let limit = office.config.event.per_hold_limit;
    if quantity == 0 {
        return Err(Problem::unprocessable("nothing-wanted", "Choose at least one ticket."));
    }
    if quantity > limit {
        let detail = format!("Choose at most {limit} tickets at once.");
        return Err(Problem::unprocessable("too-many", detail).with("limit", limit));
    }
    Ok(())
}

fn check_seats(office: &Office, seats: &[String]) -> Result<(), Problem> {
    let unknown: Vec<String> = seats.iter().filter(|seat| !office.plan.has(seat)).cloned().collect();
    if !unknown.is_empty() {
        return Err(Problem::unprocessable("unknown-seats", "There are no such seats.").with("unknown", unknown));
    }
    let mut seen = HashSet::new();
    let twice: Vec<String> = seats.iter().filter(|seat| !seen.insert(*seat)).cloned().collect();
    if !twice.is_empty() {
        return Err(Problem::unprocessable("duplicates", "Name each seat once.").with("duplicates", twice));
    }
    Ok(())
}

/// `DELETE /holds/{hold}`.
pub async fn cancel(State(office): State<Arc<Office>>, Path(hold): Path<String>) -> Result<Response, Problem> {
    let hold: HoldId = hold.parse().map_err(|_| unknown())?;
    match office.cancel(&hold).await? {
        Acted::Done => Ok(StatusCode::NO_CONTENT.into_response()),
        other => Err(refusal(other)),
    }
}

/// 404.
pub fn unknown() -> Problem {
    Problem::not_found("There is no such hold. If you had one, it is long over: choose again.")
}

/// Why a hold is no longer what it was.
pub fn refusal(acted: Acted) -> Problem {
    match acted {
        Acted::Unknown => unknown(),
        Acted::Paying => gone("This hold is being paid for and can no longer be given back."),
        Acted::Done | Acted::Gone => gone("This hold is over: it lapsed, was given back or became an order."),
    }
}

/// 410.
pub fn gone(detail: &str) -> Problem {
    Problem::new(StatusCode::GONE, "hold-over", detail)
}
