//! The queued response: what a visitor gets who may not pass yet. Never cacheable, never a redirect.

pub mod target;

use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, SET_COOKIE, X_CONTENT_TYPE_OPTIONS},
};

use serde::Serialize;

use super::{Body, Peer, body, cookies, gate::intent::Format};
use crate::{
    admission::{LiveRoom, State, StatusDocument, Turn},
    pages::{Page, WaitingPage},
};

/// What the answer depends on besides the visitor's turn.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Page or document.
    pub format: Format,
    /// Where the visitor wants to go.
    pub to: &'a str,
    /// Whether the request would have changed something, had it been forwarded.
    pub was_submitted: bool,
    /// The visitor's side.
    pub peer: Peer,
    /// Where the visitor endpoints live.
    pub prefix: &'a str,
}

/// The answer, with the room's status for queued requests.
pub fn response(room: &LiveRoom, turn: &Turn, asked: &Asked<'_>) -> Response<Body> {
    let status = StatusCode::from_u16(room.config().queued_status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut document = room.status(turn);
    let mut answer = match asked.format {
        Format::Html => {
            let page = page(room, &document, asked);
            let mut answer = Response::new(body::full(page.html));
            set(&mut answer, CONTENT_TYPE, "text/html; charset=utf-8");
            set(&mut answer, CONTENT_SECURITY_POLICY, &page.csp);
            answer
        }
        Format::Json => {
            if asked.was_submitted {
                let said = document.message.take().map_or(String::new(), |message| format!(" {message}"));
                document.message = Some(format!("Nothing was submitted.{}{said}", what_next(room, &document, asked)));
            }
            let mut answer = Response::new(body::full(json(&document)));
            set(&mut answer, CONTENT_TYPE, "application/json");
            answer
        }
    };
    *answer.status_mut() = status;
    set(&mut answer, RETRY_AFTER, &retry_after_seconds(&document).to_string());
    never_cached(&mut answer);
    remember(&mut answer, room, turn, asked.peer);
    answer
}

/// What a program does whose request would have changed something.
fn what_next(room: &LiveRoom, document: &StatusDocument, asked: &Asked<'_>) -> String {
    match document.state {
        State::SoldOut | State::Closed => String::new(),
        State::NotQueued | State::Expired => {
            let (prefix, name) = (asked.prefix, room.name());
            format!(" Join the line with POST {prefix}/{name}/join, wait for your turn, then send it again.")
        }
        _ => " Wait for your turn, then send it again.".to_owned(),
    }
}

/// Adds the visitor's new tokens.
pub fn remember<B>(answer: &mut Response<B>, room: &LiveRoom, turn: &Turn, peer: Peer) {
    for cookie in cookies::of_turn(room, turn, peer) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// What nobody may keep: not a browser, not a proxy.
pub fn never_cached<B>(answer: &mut Response<B>) {
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// A document as JSON.
pub fn json(document: &impl Serialize) -> String {
    // Strings, numbers and options always have a JSON form.
    serde_json::to_string(document).unwrap_or_default()
}

/// The waiting page that shows `document`.
fn page(room: &LiveRoom, document: &StatusDocument, asked: &Asked<'_>) -> Page {
    let page = WaitingPage {
        title: &room.config().title,
        room: room.name().as_str(),
        prefix: asked.prefix,
        state: document.state.as_str(),
        position: document.position,
        ahead: document.ahead,
        line: Some(document.line),
        eta: document.eta_seconds.map(|eta| (eta.low, eta.high)),
        message: document.message.as_deref(),
        refresh_seconds: u32::try_from(retry_after_seconds(document)).unwrap_or(u32::MAX),
        to: target::same_site(asked.to, asked.prefix),
        status_json: &json(document),
        not_submitted: asked.was_submitted,
        opens_at_ms: room.view().snapshot.opens_at_ms,
    };
    page.render()
}

fn retry_after_seconds(document: &StatusDocument) -> u64 {
    document.next_poll_ms.div_ceil(1_000).max(1)
}

fn set<B>(answer: &mut Response<B>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
