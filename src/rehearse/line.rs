//! Waiting: asks when told to, until the door opens or the sale is over.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    client::Ask,
    now_ms,
    personality::Personality,
    record::Outcome,
    tally::Kind,
    visitor::{Page, Visitor},
};

/// How waiting ended.
#[derive(Debug)]
pub(super) enum InLine {
    /// The door is open: go there.
    Admitted(String),
    /// The sale has opened for somebody who has no place yet: load the page again.
    OpenedNow,
    /// The visit is over.
    Over(Outcome),
}

/// The status document, as much of it as a visitor acts on.
#[derive(Debug, Deserialize)]
struct Status {
    state: String,
    position: Option<u64>,
    next_poll_ms: u64,
    location: Option<String>,
}

/// Polls that fail in a row before somebody gives up.
const PATIENCE: u32 = 12;

impl Visitor {
    /// Waits until something happens. `page` is where the visitor wanted to go.
    pub(super) async fn wait(&mut self, page: &str) -> InLine {
        let gives_up =
            (self.personality == Personality::LeavesEarly).then(|| Instant::now() + self.pause_between(500, 8_000));
        // The page asks as soon as its script runs.
        let mut next = self.pause_between(100, 1_000);
        let (mut before, mut failures) = (None, 0);
        loop {
            let due = Instant::now() + next;
            if let Some(ended) = self.linger(due, gives_up, page).await {
                return ended;
            }
            let late = if self.personality.polls_as_told() {
                Instant::now().saturating_duration_since(due)
            } else {
                Duration::ZERO
            };
            self.note_late(late);
            let sent_ms = now_ms();
            let Some(status) = self.poll(page).await else {
                failures += 1;
                if failures >= PATIENCE {
                    return InLine::Over(Outcome::Failed);
                }
                next = Duration::from_millis(500) * failures.min(8);
                continue;
            };
            failures = 0;
            if let Some(ended) = self.act_on(&status, page) {
                return ended;
            }
            self.note_wait(&status, sent_ms, &mut before);
            next = Duration::from_millis(status.next_poll_ms.clamp(100, 300_000));
        }
    }

    /// Passes the time until the next poll in this person's way.
    async fn linger(&mut self, due: Instant, gives_up: Option<Instant>, page: &str) -> Option<InLine> {
        if self.personality == Personality::F5 {
            return self.hammer(page).await;
        }
        let until = gives_up.map_or(due, |gives_up| gives_up.min(due));
        let served = self.served.clone();
        tokio::select! {
            () = served.cancelled() => return Some(InLine::Admitted(page.to_owned())),
            () = sleep_until(until) => {}
        }
        if gives_up.is_some_and(|gives_up| Instant::now() >= gives_up) {
            self.leave().await;
            return Some(InLine::Over(Outcome::LeftEarly));
        }
        None
    }

    /// Reloads the page a few times, as fast as a finger can, and looks at what its script says only then.
    async fn hammer(&mut self, page: &str) -> Option<InLine> {
        for _ in 0..5 {
            let pause = self.pause_between(300, 800);
            sleep(pause).await;
            if let Ok(Page::Shop(path)) = self.open(page).await {
                return Some(InLine::Admitted(path));
            }
        }
        None
    }

    fn note_late(&self, late: Duration) {
        let record = &mut self.tab.person().record;
        record.late_ms = record.late_ms.max(u64::try_from(late.as_millis()).unwrap_or(u64::MAX));
    }

    async fn poll(&mut self, page: &str) -> Option<Status> {
        let path = format!("{}?to={}", self.world.plan.endpoint("status"), in_query(page));
        self.tab.person().record.polls += 1;
        let answer = self.ask(&Ask::get(Kind::Status, &path)).await.ok()?;
        if answer.status != 200 {
            self.world.tally.unexpected(&format!("status: {}", answer.describe()));
            return None;
        }
        let status = serde_json::from_slice::<Status>(&answer.body).ok();
        if status.is_none() {
            self.world.tally.unexpected("status: not the JSON document promised");
        }
        status
    }

    fn act_on(&self, status: &Status, page: &str) -> Option<InLine> {
        match status.state.as_str() {
            "waiting" | "scheduled" | "prequeue" | "paused" => None,
            "admitted" => {
                let location = status.location.clone().filter(|location| location.starts_with('/'));
                let inside = {
                    let mut person = self.tab.person();
                    person.note_address(location.as_deref().unwrap_or_default());
                    person.is_inside()
                };
                if !inside {
                    self.world.tally.unexpected("status: admitted, without a session cookie");
                }
                self.served.cancel();
                Some(InLine::Admitted(location.unwrap_or_else(|| page.to_owned())))
            }
            "sold_out" => Some(InLine::Over(Outcome::SoldOut)),
            "closed" => Some(InLine::Over(Outcome::Closed)),
            _ if self.served.is_cancelled() => Some(InLine::Admitted(page.to_owned())),
            "not_queued" if !self.tab.person().is_queued() => Some(InLine::OpenedNow),
            "not_queued" | "expired" => Some(InLine::Over(Outcome::LostPlace)),
            _ => {
                self.world.tally.unexpected("status: a state nobody knows");
                Some(InLine::Over(Outcome::Failed))
            }
        }
    }

    fn note_wait(&self, status: &Status, sent_ms: u64, before: &mut Option<u64>) {
        let mut person = self.tab.person();
        let record = &mut person.record;
        if status.state != "waiting" {
            return;
        }
        if record.returns == 0 {
            record.last_waiting_ms = record.last_waiting_ms.max(Some(sent_ms));
        }
        if let Some(position) = status.position {
            record.note_position(*before, position);
            *before = Some(position);
        }
    }
}

/// A path as the value of a query parameter (RFC 3986 §3.4).
fn in_query(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
