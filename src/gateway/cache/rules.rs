//! Whether an answer may be kept, and how long: RFC 9111 as far as a cache that is shared by all visitors may go. Only what
//! the origin says counts; nothing is guessed.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{AGE, CACHE_CONTROL, DATE, EXPIRES, SET_COOKIE, VARY},
    response,
};

use super::super::{
    forward_headers::{self, X_FORWARDED_HOST, X_FORWARDED_PROTO},
    origin_answer::EndsWithConnection,
};

/// How an answer may be used, counted from when it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    /// How old it was when it came.
    pub(super) age: Duration,
    /// As it is.
    pub(super) fresh: Duration,
    /// From then on, while somebody asks anew (RFC 5861 §3).
    pub(super) meanwhile: Duration,
    /// From then on, when the origin fails (RFC 5861 §4).
    pub(super) on_error: Duration,
}

/// However long the origin says.
const MOST_FRESH: Duration = Duration::from_hours(24);
/// A visitor shall not see what is older than that while others see the new.
const MOST_MEANWHILE: Duration = Duration::from_mins(1);
const MOST_ON_ERROR: Duration = Duration::from_mins(10);

/// What is kept of the answers to plain requests; everything else is about one visitor, or is an error.
const KEPT: [StatusCode; 5] = [
    StatusCode::OK,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::PERMANENT_REDIRECT,
    StatusCode::NOT_FOUND,
    StatusCode::GONE,
];

/// How an answer may be used; `None` if it must not be kept.
pub(super) fn life(head: &response::Parts, now: SystemTime) -> Option<Life> {
    let headers = &head.headers;
    let says = directives(headers)?;
    let is_said = |names: &[&str]| says.iter().any(|(name, _)| names.contains(&name.as_str()));
    let is_personal = headers.contains_key(SET_COOKIE)
        // What it says to the gateway about the visitor's session would be lost on the next one.
        || headers.contains_key("stanchion-command")
        || headers.contains_key("stanchion-pin");
    if !KEPT.contains(&head.status)
        || is_personal
        || is_said(&["no-store", "no-cache", "private"])
        // Nobody could tell whether it came in full.
        || head.extensions.get::<EndsWithConnection>().is_some()
    {
        return None;
    }
    let age = match headers.get(AGE) {
        Some(age) => Duration::from_secs(age.to_str().ok()?.trim().parse().ok()?),
        None => Duration::ZERO,
    };
    let lifetime = match (seconds(&says, "s-maxage"), seconds(&says, "max-age")) {
        (Said::Unclear, _) | (Said::Nothing, Said::Unclear) => return None,
        (Said::For(lifetime), _) | (Said::Nothing, Said::For(lifetime)) => lifetime,
        (Said::Nothing, Said::Nothing) => expires_in(headers, now)?,
    };
    let fresh = lifetime.min(MOST_FRESH).checked_sub(age).filter(|fresh| !fresh.is_zero())?;
    let may_be_stale = !is_said(&["must-revalidate", "proxy-revalidate"]);
    let stale = |name, most: Duration| match seconds(&says, name) {
        Said::For(lifetime) if may_be_stale => lifetime.min(most),
        _ => Duration::ZERO,
    };
    let (meanwhile, on_error) =
        (stale("stale-while-revalidate", MOST_MEANWHILE), stale("stale-if-error", MOST_ON_ERROR));
    Some(Life { age, fresh, meanwhile, on_error })
}

/// The fields of the request that the answer depends on, sorted; `None` if nobody can say.
pub(super) fn varies_by(headers: &HeaderMap) -> Option<Vec<HeaderName>> {
    let mut fields = Vec::new();
    for line in headers.get_all(VARY) {
        for field in line.to_str().ok()?.split(',').map(str::trim).filter(|field| !field.is_empty()) {
            let field: HeaderName = field.parse().ok()?;
            // These two follow from what every key holds. Of the others that the gateway writes each visitor has their own.
            let is_keyed = field == X_FORWARDED_HOST || field == X_FORWARDED_PROTO || field == http::header::HOST;
            if field == "*" || (forward_headers::is_reserved(&field) && !is_keyed) {
                return None;
            }
            if !is_keyed {
                fields.push(field);
            }
        }
    }
    fields.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    fields.dedup();
    Some(fields)
}

enum Said {
    Nothing,
    For(Duration),
    Unclear,
}

/// The shortest that is said.
fn seconds(says: &[(String, Option<String>)], name: &str) -> Said {
    let mut shortest = Said::Nothing;
    for (_, value) in says.iter().filter(|(said, _)| said == name) {
        let value =
            value.as_deref().filter(|value| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(value) = value else { return Said::Unclear };
        // More digits than fit mean longer than anybody waits (RFC 9111 §1.2.2).
        let value = Duration::from_secs(value.parse::<u32>().unwrap_or(u32::MAX).into());
        shortest = match shortest {
            Said::For(shorter) if shorter < value => Said::For(shorter),
            _ => Said::For(value),
        };
    }
    shortest
}

fn expires_in(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let date = |name: &HeaderName| {
        let mut lines = headers.get_all(name).iter();
        let only = lines.next().filter(|_| lines.next().is_none())?;
        httpdate::parse_http_date(only.to_str().ok()?).ok()
    };
    // By the origin's own clock, if it tells.
    date(&EXPIRES)?.duration_since(date(&DATE).unwrap_or(now)).ok()
}

/// Every directive of `Cache-Control`, in lower case, and what it is set to. `None` if it cannot be read.
fn directives(headers: &HeaderMap) -> Option<Vec<(String, Option<String>)>> {
    let mut all = Vec::new();
    for line in headers.get_all(CACHE_CONTROL) {
        let (mut is_quoted, mut is_escaped) = (false, false);
        let members = line.to_str().ok()?.split(|sign: char| {
            let ends = sign == ',' && !is_quoted;
            if sign == '"' && !is_escaped {
                is_quoted = !is_quoted;
            }
            is_escaped = is_quoted && sign == '\\' && !is_escaped;
            ends
        });
        for member in members.map(str::trim).filter(|member| !member.is_empty()) {
            let (name, value) = member.split_once('=').map_or((member, None), |(name, value)| (name, Some(value)));
            let value = value.map(|value| value.trim().trim_matches('"').to_owned());
            all.push((name.trim().to_ascii_lowercase(), value));
        }
        if is_quoted {
            return None;
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests;
