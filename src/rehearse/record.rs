//! What one person lived through, as the verdict needs it.

use std::time::Instant;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;

use super::{
    jar::{Change, Jar},
    personality::Personality,
};

/// How a visit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// Still there when the rehearsal gave up.
    #[default]
    Unfinished,
    /// Has tickets.
    Bought,
    /// The payment was refused, came too late or was paid back.
    Refused,
    /// Was told that nothing is left.
    SoldOut,
    /// Was told that the room is closed.
    Closed,
    /// Gave up while waiting, as planned.
    LeftEarly,
    /// Took seats and did not buy them, as planned.
    AbandonedHold,
    /// Had a place and was told it is gone.
    LostPlace,
    /// Could not go on: the answers made no sense, or there were none.
    Failed,
}

/// One stretch of time inside, by the tokens that granted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Who the token says it is.
    pub sub: String,
    /// When the server called them (milliseconds since the epoch, its clock).
    pub called_ms: u64,
    /// When the server let them in (its clock).
    pub admitted_ms: u64,
    /// When it ends unless renewed (server's clock).
    pub expires_ms: u64,
    /// When we learned of it (our clock).
    pub learned_ms: u64,
    /// When we sent the request that ended it (our clock): the slot was free no earlier.
    pub ended_ms: Option<u64>,
    /// Two tokens of this session name different times of admission, or one names none: the time is approximate.
    pub approximate: bool,
}

/// One order as its buyer knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its identifier.
    pub id: String,
    /// The last status its buyer was told.
    pub status: String,
    /// The seats; empty for general admission.
    pub seats: Vec<String>,
    /// How many tickets.
    pub quantity: u32,
}

/// One person's visit. Where a person waited more than once, the times and positions are of the first time.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// What they are like.
    pub personality: Personality,
    /// How it ended.
    pub outcome: Outcome,
    /// The distinct visitors their tokens named; one unless something is wrong.
    pub subs: Vec<String>,
    /// The distinct scores their tokens named; promises made before the opening name none.
    pub scores: Vec<u64>,
    /// Got in without waiting.
    pub direct: bool,
    /// When they were first told to wait (our clock).
    pub joined_ms: Option<u64>,
    /// The first position they were told.
    pub first_position: Option<u64>,
    /// The last position they were told.
    pub last_position: Option<u64>,
    /// How often they asked.
    pub polls: u32,
    /// The latest they ever asked, against what they were told: our own fault, not the server's.
    pub late_ms: u64,
    /// When they sent the last request that was answered with "wait" (our clock).
    pub last_waiting_ms: Option<u64>,
    /// The largest rise of the position within the exact region (at most [`EXACT_POSITIONS`]): by how much, from where.
    pub rise_near: (u64, u64),
    /// The largest rise behind it, as a share of the position.
    pub rise_far: f64,
    /// Their sessions, in order.
    pub sessions: Vec<Session>,
    /// How often a session was refused before its end.
    pub cut_short: u32,
    /// How often they had to wait again after a session ran out.
    pub returns: u32,
    /// Some seats were held for them at some time.
    pub took_seats: bool,
    /// Their orders.
    pub orders: Vec<Order>,
    /// How many addresses carried a token.
    pub tokens_in_urls: u32,
}

/// Positions up to this one are exact (design: rank sketch); behind it they are close.
pub const EXACT_POSITIONS: u64 = 1_000;

impl Record {
    /// Notes a position told to one tab, after `before` on the same tab.
    pub fn note_position(&mut self, before: Option<u64>, now: u64) {
        if self.returns == 0 {
            self.first_position.get_or_insert(now);
            self.last_position = Some(now);
        }
        let Some(before) = before.filter(|before| now > *before) else { return };
        if before <= EXACT_POSITIONS {
            self.rise_near = self.rise_near.max((now - before, before));
        } else {
            self.rise_far = self.rise_far.max(super::real(now - before) / super::real(before));
        }
    }

    /// Whether they held a token of the queue or of a session at any time.
    pub fn had_place(&self) -> bool {
        !self.subs.is_empty()
    }

    /// The running session ends with the request sent at `sent_ms`.
    pub fn end_session(&mut self, sent_ms: u64) {
        if let Some(session) = self.sessions.last_mut() {
            session.ended_ms.get_or_insert(sent_ms);
        }
    }

    fn note_identity(&mut self, claims: &Claims) {
        if !self.subs.contains(&claims.sub) {
            self.subs.push(claims.sub.clone());
        }
        // A token issued at no time is a promise from before the opening: it says who, but not yet where in the line.
        if claims.iat > 0 && !self.scores.contains(&claims.score) {
            self.scores.push(claims.score);
        }
    }

    fn note_session(&mut self, claims: &Claims, learned_ms: u64) {
        let admitted_ms = claims.admitted_ms.unwrap_or(claims.iat * 1_000);
        let expires_ms = claims.exp * 1_000;
        // A renewed token is the same session; so is a late answer to another tab about one that has ended.
        let same = self.sessions.iter_mut().rev().find(|session| {
            session.sub == claims.sub
                && (session.admitted_ms == admitted_ms
                    || session.ended_ms.is_none() && admitted_ms < session.expires_ms)
        });
        if let Some(session) = same {
            session.expires_ms = session.expires_ms.max(expires_ms);
            session.approximate |= session.admitted_ms != admitted_ms;
            return;
        }
        self.sessions.push(Session {
            sub: claims.sub.clone(),
            called_ms: claims.called_ms.unwrap_or(admitted_ms),
            admitted_ms,
            expires_ms,
            learned_ms,
            ended_ms: None,
            approximate: claims.admitted_ms.is_none(),
        });
    }
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    score: u64,
    iat: u64,
    exp: u64,
    called_ms: Option<u64>,
    admitted_ms: Option<u64>,
}

/// Reads a token without checking it: the client has no key, and needs none.
fn claims(token: &str) -> Option<Claims> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// One person: the cookies, which all their tabs share, and the record.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) jar: Jar,
    pub(super) record: Record,
    queue_cookie: String,
    session_cookie: String,
}

impl Person {
    pub(super) fn new(room: &str, personality: Personality) -> Self {
        Self {
            jar: Jar::default(),
            record: Record { personality, ..Record::default() },
            queue_cookie: format!("stanchion_q_{room}"),
            session_cookie: format!("stanchion_s_{room}"),
        }
    }

    /// Takes an answer's `Set-Cookie` line. Returns `false` for a waiting-room token that cannot be read.
    pub(super) fn take_cookie(&mut self, line: &str, sent_ms: u64, received_ms: u64) -> bool {
        match self.jar.take(line, Instant::now()) {
            Change::Set { name, value } if name == self.queue_cookie || name == self.session_cookie => {
                let Some(claims) = claims(&value) else { return false };
                self.record.note_identity(&claims);
                if name == self.session_cookie {
                    self.record.note_session(&claims, received_ms);
                }
            }
            Change::Cleared { name } if name == self.session_cookie => self.record.end_session(sent_ms),
            _ => {}
        }
        true
    }

    pub(super) fn is_inside(&self) -> bool {
        self.jar.has(&self.session_cookie, Instant::now())
    }

    pub(super) fn is_queued(&self) -> bool {
        self.jar.has(&self.queue_cookie, Instant::now())
    }

    /// Notes an address seen or used, which must not carry a token (G10).
    pub(super) fn note_address(&mut self, address: &str) {
        if self.jar.leaks_into(address) || has_token(address) {
            self.record.tokens_in_urls += 1;
        }
    }
}

/// Whether the text contains something that looks like a JWT: a header that starts with `{"`, and two dots.
fn has_token(text: &str) -> bool {
    text.match_indices("eyJ").any(|(at, _)| {
        let word = text[at..].split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).next();
        word.is_some_and(|word| word.split('.').filter(|part| !part.is_empty()).count() >= 3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(payload: &serde_json::Value) -> String {
        format!("eyJhbGciOiJIUzI1NiJ9.{}.c2ln", URL_SAFE_NO_PAD.encode(payload.to_string()))
    }

    fn session(admitted_ms: u64, exp: u64) -> String {
        let payload = serde_json::json!({
            "typ": "session", "room": "main", "sub": "v", "score": 7, "iat": 1, "exp": exp, "epoch": 1,
            "called_ms": admitted_ms - 5, "admitted_ms": admitted_ms,
        });
        format!("stanchion_s_main={}; Path=/; HttpOnly", token(&payload))
    }

    #[test]
    fn a_renewed_token_is_the_same_session_and_one_after_its_end_is_another() {
        let mut person = Person::new("main", Personality::Plain);
        assert!(person.take_cookie(&session(10_000, 60), 9_990, 10_010));
        assert!(person.take_cookie(&session(10_000, 90), 20_000, 20_001));
        assert_eq!(person.record.sessions.len(), 1);
        assert_eq!(person.record.sessions[0].expires_ms, 90_000);

        assert!(person.take_cookie("stanchion_s_main=; Path=/; Max-Age=0", 30_000, 30_001));
        assert_eq!(person.record.sessions[0].ended_ms, Some(30_000));
        assert!(person.take_cookie(&session(40_000, 120), 39_000, 40_001));
        assert_eq!(person.record.sessions.len(), 2);
    }

    #[test]
    fn two_admission_times_for_one_session_make_it_approximate() {
        let mut person = Person::new("main", Personality::Plain);
        person.take_cookie(&session(10_000, 60), 9_990, 10_010);
        person.take_cookie(&session(10_003, 60), 9_990, 10_011);
        assert_eq!(person.record.sessions.len(), 1);
        assert!(person.record.sessions[0].approximate);
    }

    #[test]
    fn rises_are_strict_near_the_front_and_relative_behind() {
        let mut record = Record::default();
        record.note_position(None, 5_000);
        record.note_position(Some(5_000), 5_010);
        record.note_position(Some(1_000), 999);
        assert_eq!(record.rise_near, (0, 0));
        assert!((record.rise_far - 0.002).abs() < 1e-9);
        record.note_position(Some(1_000), 1_001);
        assert_eq!(record.rise_near, (1, 1_000));
    }

    #[test]
    fn a_token_in_an_address_is_noticed() {
        assert!(has_token("/events/demo?t=eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl&x=1"));
        assert!(!has_token("/events/eyJonly?to=/a.b.c"));
        let mut person = Person::new("main", Personality::Plain);
        person.take_cookie("basket=0123456789abcdef0123; Path=/", 0, 0);
        person.note_address("/checkout?basket=0123456789abcdef0123");
        assert_eq!(person.record.tokens_in_urls, 1);
    }
}
