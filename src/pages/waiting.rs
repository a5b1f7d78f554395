//! The waiting page: one document that can show every state, so that the script only has to switch between them.

use askama::Template;

use super::{Page, assets, or_bare, text};
use crate::embed::PAGE_CSP;

/// What a visitor sees who has not been let in.
#[derive(Debug, Clone, Copy)]
pub struct WaitingPage<'a> {
    /// The room's title.
    pub title: &'a str,
    /// The room's name, part of paths.
    pub room: &'a str,
    /// Where the public machinery lives, such as `/__room` (no slash at the end).
    pub prefix: &'a str,
    /// `state` of the status document; an unknown one is shown as `waiting`.
    pub state: &'a str,
    /// The visitor's place, from 1.
    pub position: Option<u64>,
    /// How many are before them.
    pub ahead: Option<u64>,
    /// How many wait in all.
    pub line: Option<u64>,
    /// Expected wait in seconds, from and to.
    pub eta: Option<(u64, u64)>,
    /// What the operator wants visitors to read.
    pub message: Option<&'a str>,
    /// How often a browser without JavaScript asks again, in seconds.
    pub refresh_seconds: u32,
    /// Where the visitor wanted to go; anything but a path on this site becomes `/`.
    pub to: &'a str,
    /// The status document, for the script to start from.
    pub status_json: &'a str,
    /// Whether this page answers a form that was therefore not handed on.
    pub not_submitted: bool,
    /// When the sale opens, in milliseconds since the Unix epoch.
    pub opens_at_ms: Option<u64>,
}

const STATES: [&str; 9] =
    ["waiting", "scheduled", "prequeue", "paused", "sold_out", "closed", "expired", "admitted", "not_queued"];

impl WaitingPage<'_> {
    /// The document. Never fails towards the visitor.
    pub fn render(&self) -> Page {
        Page { html: or_bare(View::of(self).render()), csp: PAGE_CSP.to_owned() }
    }
}

#[derive(Template)]
#[template(path = "room/waiting.html")]
struct View<'a> {
    page: &'a WaitingPage<'a>,
    state: &'a str,
    to: &'a str,
    css: String,
    js: String,
    /// `{prefix}/{room}`, and the query that keeps where the visitor wanted to go.
    base: String,
    query: String,
    /// Content of the refresh element; `None` where asking again would change what the visitor is (a place that
    /// expired must be asked for, not silently replaced).
    refresh: Option<String>,
    /// Whether the title names the sale. One that only repeats a heading, as the default does, is not shown again.
    named: bool,
    position: Option<String>,
    ahead: Option<String>,
    line: Option<String>,
    wait: Option<String>,
    opens: Option<(String, String)>,
    status: String,
}

impl<'a> View<'a> {
    fn of(page: &'a WaitingPage<'a>) -> Self {
        let state = match page.state {
            // Whoever has a place before the opening does not draw.
            "prequeue" if page.position.is_some() => "early",
            state if STATES.contains(&state) => state,
            _ => "waiting",
        };
        let to = text::same_site(page.to);
        let in_line = matches!(state, "waiting" | "paused" | "prequeue" | "early");
        Self {
            page,
            state,
            to,
            css: assets::url(page.prefix, "room.css"),
            js: assets::url(page.prefix, "room.js"),
            base: format!("{}/{}", page.prefix, page.room),
            query: format!("to={}", text::query_value(to)),
            refresh: refresh(state, page, to),
            named: STATES.iter().all(|state| heading(state) != page.title),
            position: page.position.filter(|_| in_line).map(text::grouped),
            ahead: page.ahead.filter(|_| in_line).map(text::grouped),
            line: page.line.filter(|_| in_line).map(text::grouped),
            wait: page.eta.map(text::wait),
            opens: page.opens_at_ms.filter(|_| matches!(state, "scheduled" | "prequeue" | "early")).and_then(text::utc),
            status: text::json_for_script(page.status_json),
        }
    }

    fn is(&self, states: &str) -> bool {
        states.split(' ').any(|state| state == self.state)
    }

    /// `" hidden"` for everything that does not belong to the state of now. Markup of our own, so not escaped.
    fn unless(&self, states: &str) -> &'static str {
        if self.is(states) { "" } else { " hidden" }
    }

    /// Ends the start tag of what belongs to these states.
    fn open(&self, states: &str) -> &'static str {
        open(self.is(states))
    }

    /// Comes before the end tag of what [`View::open`] began.
    fn close(&self, states: &str) -> &'static str {
        close(self.is(states))
    }
}

/// Ends a start tag. What is not shown is a comment inside an element that is hidden: browsers without style, such as
/// those that show text only, know nothing of `hidden`. The script takes the comments away. Comments cannot be inside
/// each other, and what is escaped cannot end one.
const fn open(shown: bool) -> &'static str {
    if shown { ">" } else { " hidden><!--" }
}

/// Comes before the end tag of what [`open`] began.
const fn close(shown: bool) -> &'static str {
    if shown { "" } else { "-->" }
}

/// The headline of a state.
fn heading(state: &str) -> &'static str {
    match state {
        "paused" => "The line is paused",
        "early" => "You are in line, and it moves when the sale opens",
        "prequeue" => "You are in. The order is drawn when the sale opens",
        "scheduled" => "The sale has not opened yet",
        "sold_out" => "Everything is sold",
        "closed" => "This sale is over",
        "expired" => "Your place was given up",
        "not_queued" => "You are not in the line",
        "admitted" => "It is your turn",
        _ => "You are in line",
    }
}

fn refresh(state: &str, page: &WaitingPage<'_>, to: &str) -> Option<String> {
    let seconds = page.refresh_seconds.max(1);
    match state {
        "expired" | "not_queued" | "closed" => None,
        // Asking for this address again could send the form again: go where the visitor wanted to go instead.
        _ if page.not_submitted => Some(format!("{seconds};url={to}")),
        _ => Some(seconds.to_string()),
    }
}
