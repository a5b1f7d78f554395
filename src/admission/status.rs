//! The status document: what a visitor is told, as a pure function of what the node knows.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{flow::Flow, turn::Standing, turn::Turn, view::View};
use crate::queue::{Mode, Policy};

/// The answer to a poll, and the queued response for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusDocument {
    /// The room's name.
    pub room: String,
    /// Where the visitor stands.
    pub state: State,
    /// 1 for whoever is next; `None` when there is no order yet or any more.
    pub position: Option<u64>,
    /// How many wait before the visitor.
    pub ahead: Option<u64>,
    /// How many wait altogether.
    pub line: u64,
    /// How long it will take; `None` when nobody can say.
    pub eta_seconds: Option<Eta>,
    /// How many were let in per minute of late.
    pub admitted_per_minute: f64,
    /// When the sale opens, RFC 3339; `None` when no time is set.
    pub opens_at: Option<String>,
    /// When to ask again.
    pub next_poll_ms: u64,
    /// What the operator says.
    pub message: Option<String>,
    /// Where an admitted visitor goes.
    pub location: Option<String>,
}

/// Where a visitor stands, as the document says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No place, and none was asked for.
    NotQueued,
    /// Before the opening.
    Scheduled,
    /// Before the draw.
    Prequeue,
    /// In the line.
    Waiting,
    /// Let in.
    Admitted,
    /// In the line, which stands still.
    Paused,
    /// Nothing is left.
    SoldOut,
    /// Over.
    Closed,
    /// The place was given up.
    Expired,
}

impl State {
    /// The state as the document spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotQueued => "not_queued",
            Self::Scheduled => "scheduled",
            Self::Prequeue => "prequeue",
            Self::Waiting => "waiting",
            Self::Admitted => "admitted",
            Self::Paused => "paused",
            Self::SoldOut => "sold_out",
            Self::Closed => "closed",
            Self::Expired => "expired",
        }
    }
}

/// A range of seconds, `low` ≤ `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eta {
    /// At the soonest.
    pub low: u64,
    /// At the latest, as things go now.
    pub high: u64,
}

/// What a status document follows from, besides the visitor's turn.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The room's name.
    pub room: &'a str,
    /// What the operator says.
    pub message: Option<&'a str>,
    /// How the room admits.
    pub policy: &'a Policy,
    /// What the node knows.
    pub view: &'a View,
    /// The store's time, milliseconds since the epoch.
    pub now_ms: u64,
    /// Whether the store is away, so that nothing changes for now.
    pub is_stale: bool,
    /// A random number from 0 to 1 that spreads the visitors' polls.
    pub jitter: f64,
}

/// What a visitor whose turn is `turn` is told.
pub fn document(situation: &Situation<'_>, turn: &Turn) -> StatusDocument {
    let Situation { view, now_ms, .. } = *situation;
    let state = state(&turn.standing, view.mode(now_ms));
    let in_line = matches!(state, State::Waiting | State::Paused | State::Prequeue);
    let ahead = turn.ahead(view).filter(|_| in_line);
    let eta_seconds = ahead.filter(|_| state == State::Waiting && !situation.is_stale).and_then(|ahead| {
        let settles_ms = view.snapshot.settle_until_ms.saturating_sub(now_ms);
        eta(ahead, view.flow, view.snapshot.rate, settles_ms.div_ceil(1_000))
    });
    let position = ahead.map(|ahead| ahead.saturating_add(1));
    let is_registered = turn.standing == Standing::Registered;
    StatusDocument {
        room: situation.room.to_owned(),
        state,
        position,
        ahead,
        // A snapshot from just before they joined has not counted them yet.
        line: view.snapshot.line.max(position.unwrap_or(0)).max(still_to_draw(view)).max(u64::from(is_registered)),
        eta_seconds,
        admitted_per_minute: (view.flow.admitted * 600.0).round() / 10.0,
        opens_at: view.snapshot.opens_at_ms.and_then(rfc3339),
        next_poll_ms: next_poll_ms(situation, turn, state, ahead, eta_seconds),
        message: message(situation.message, turn.is_left_out() && in_line),
        location: None,
    }
}

/// What happened to somebody whom a loss in the pre-queue kept out of the draw.
const LEFT_OUT: &str = "The list of those who came early was lost before the draw, and your browser was not back on it when it \
     was closed, so you could not take part. Your place is directly behind those who did, before everybody who came later.";

/// What the operator says, and before that what the visitor should know.
fn message(operator: Option<&str>, is_left_out: bool) -> Option<String> {
    match (is_left_out, operator) {
        (false, operator) => operator.map(str::to_owned),
        (true, None) => Some(LEFT_OUT.to_owned()),
        (true, Some(operator)) => Some(format!("{LEFT_OUT} {operator}")),
    }
}

/// How many are in the roster of a draw that is not done.
fn still_to_draw(view: &View) -> u64 {
    view.snapshot.draw.as_ref().filter(|draw| !draw.is_done).map_or(0, |draw| draw.roster)
}

fn state(standing: &Standing, mode: Mode) -> State {
    match (standing, mode) {
        (Standing::Admitted(_), _) => State::Admitted,
        (Standing::Expired, _) => State::Expired,
        (Standing::NotOpen(Mode::SoldOut), _) | (_, Mode::SoldOut) => State::SoldOut,
        (Standing::NotOpen(Mode::Closed), _) | (_, Mode::Closed) => State::Closed,
        (Standing::NotOpen(Mode::Scheduled), _)
        | (Standing::Promised | Standing::Registered | Standing::Waiting, Mode::Scheduled) => State::Scheduled,
        (Standing::Registered | Standing::NotOpen(Mode::Prequeue), _)
        | (Standing::Promised | Standing::Waiting, Mode::Prequeue) => State::Prequeue,
        (Standing::NotQueued, _) => State::NotQueued,
        (Standing::Called { .. }, _) => State::Waiting,
        (Standing::NotOpen(Mode::Paused), _) | (_, Mode::Paused) => State::Paused,
        (Standing::NotOpen(Mode::Open | Mode::Drawing) | Standing::Promised | Standing::Waiting, _) => State::Waiting,
    }
}

/// From the pace of late, which may get a little faster, or slower. `None` when nothing moves.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "finite, not negative, and a cast from float saturates"
)]
fn eta(ahead: u64, flow: Flow, rate: f64, extra_seconds: u64) -> Option<Eta> {
    // Below one in ten minutes the line stands still for whoever looks at it.
    if flow.called.is_nan() || flow.called < 1.0 / 600.0 || rate.is_nan() || rate <= 0.0 {
        return None;
    }
    // Called visitors may come faster than the rate when absent ones are passed over, so the pace seen counts more.
    let fast = (flow.called * 1.1).min(rate.max(flow.called));
    let slow = flow.called * 0.8;
    let low = (ahead as f64 / fast).floor() as u64;
    let high = ((ahead as f64 + 1.0) / slow).ceil() as u64;
    Some(Eta { low: low.saturating_add(extra_seconds), high: high.max(low).saturating_add(extra_seconds) })
}

const SOON_MS: u64 = 1_000;
const LONGEST_MS: u64 = 15_000;
/// A draw takes some seconds.
const DRAWING_MS: u64 = 3_000;
/// At least this while the store is away.
const STALE_MS: u64 = 5_000;
/// A called visitor whose turn is a moment away.
const CALLED_MS: u64 = 250;

/// Often near the front, seldom far from it, and often enough that a called or merely patient visitor is never
/// taken for absent. The jitter comes last, after every cap, so that capped visitors are spread too.
fn next_poll_ms(
    situation: &Situation<'_>,
    turn: &Turn,
    state: State,
    ahead: Option<u64>,
    eta_seconds: Option<Eta>,
) -> u64 {
    let Situation { policy, view, now_ms, is_stale, jitter, .. } = *situation;
    let is_called = matches!(turn.standing, Standing::Called { .. });
    let base = match (state, eta_seconds) {
        (State::Scheduled | State::Prequeue, _) => return until_opening_ms(view, now_ms, jitter),
        (State::Waiting, _) if is_called => wait_ms(turn),
        (State::Waiting, Some(eta)) => eta.low.saturating_add(eta.high).saturating_mul(1_000 / 20),
        // Nothing is known of the pace: ten seconds for a thousand places.
        (State::Waiting, None) => ahead.map_or(SOON_MS, |ahead| ahead.saturating_mul(10)),
        (State::Admitted, _) => SOON_MS,
        (State::NotQueued, _) => 5_000,
        (State::Paused, _) => 10_000,
        (State::SoldOut | State::Closed | State::Expired, _) => LONGEST_MS,
    };
    let base = match (state, ahead) {
        (State::Waiting, Some(ahead)) if !is_called => base.min(earliest_turn_ms(ahead, view.snapshot.rate) / 3),
        _ => base,
    };
    let (base, floor) = match (is_stale, is_called) {
        (true, _) => (base.saturating_mul(2), STALE_MS),
        (false, true) => (base, CALLED_MS),
        (false, false) => (base, SOON_MS),
    };
    let half = |window: Duration| u64::try_from(window.as_millis() / 2).unwrap_or(u64::MAX).max(CALLED_MS);
    let cap = match state {
        State::Waiting | State::Paused => LONGEST_MS.min(half(policy.claim_window)).min(half(policy.absent_after)),
        _ => LONGEST_MS,
    };
    spread(base.max(floor).min(cap), jitter)
}

/// When a visitor with `ahead` before them is called if nothing but the rate holds the line up. Whoever polls by the pace
/// seen so far comes late when it picks up, at the opening above all, and keeps a slot empty until then.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and a cast from float saturates"
)]
fn earliest_turn_ms(ahead: u64, rate: f64) -> u64 {
    if rate > 0.0 { (ahead as f64 / rate * 1_000.0) as u64 } else { u64::MAX }
}

fn wait_ms(turn: &Turn) -> u64 {
    match turn.standing {
        Standing::Called { wait_ms } => wait_ms.saturating_add(100).min(STALE_MS),
        _ => SOON_MS,
    }
}

/// At the next hour of the schedule, spread over two seconds; until it is near, now and then, because clocks and plans
/// change. While everybody draws, every few seconds.
fn until_opening_ms(view: &View, now_ms: u64, jitter: f64) -> u64 {
    if view.mode(now_ms) == Mode::Drawing {
        return spread(DRAWING_MS, jitter);
    }
    let Some(opens_at_ms) = view.snapshot.opens_at_ms else { return spread(LONGEST_MS, jitter) };
    let at_opening = opens_at_ms.saturating_sub(now_ms).saturating_add(100).saturating_add(scaled(1_900, jitter));
    at_opening.min(spread(LONGEST_MS, jitter))
}

/// `ms` ±20 %.
fn spread(ms: u64, jitter: f64) -> u64 {
    scaled(ms, 0.8 + 0.4 * jitter)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "milliseconds of some seconds"
)]
fn scaled(ms: u64, by: f64) -> u64 {
    (ms as f64 * by).round() as u64
}

/// A time, Unix milliseconds, as documents say it; `None` for one that no calendar knows.
pub fn rfc3339(unix_ms: u64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(unix_ms).ok()?).ok()?;
    Some(at.to_string())
}

#[cfg(test)]
mod tests;
