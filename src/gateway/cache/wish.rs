//! What a visitor asks for, in the form in which it is asked for on behalf of all.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, EXPECT, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
        IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, TRANSFER_ENCODING, UPGRADE,
    },
    request,
};

use super::{
    super::{Route, forward_headers, gatekeeper::Sharing},
    answer::Answer,
};
use crate::queue::RoomName;

/// What one answer is kept under. The fields that it was asked with beside these are in `variant`, if it depends on any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    room: RoomName,
    /// The origin hears of it in `X-Forwarded-Proto`.
    is_tls: bool,
    /// As it was written: the origin sees it so, and may write it into the page.
    host: Option<HeaderValue>,
    /// Path and query, byte by byte.
    target: Box<str>,
    variant: Option<Box<[u8]>>,
}

/// A request whose answer may be somebody else's too.
#[derive(Debug)]
pub(in super::super) struct Wish {
    key: Key,
    /// What the origin sees, but for what the gateway says.
    fields: HeaderMap,
    conditions: HeaderMap,
    pub(super) is_head: bool,
}

/// With these the origin is asked for something else, or by somebody.
static NEVER: [HeaderName; 9] = [
    AUTHORIZATION,
    RANGE,
    IF_RANGE,
    IF_MATCH,
    IF_UNMODIFIED_SINCE,
    EXPECT,
    UPGRADE,
    TRANSFER_ENCODING,
    HeaderName::from_static("x-http-method-override"),
];

/// Whether the answer can be somebody else's too. `Cache-Control` does not count: people who press reload are the stampede.
pub(in super::super) fn is_shareable(head: &request::Parts) -> bool {
    matches!(head.method, Method::GET | Method::HEAD)
        && !NEVER.iter().any(|name| head.headers.contains_key(name))
        && head.headers.get_all(CONTENT_LENGTH).iter().all(|length| length == "0")
}

impl Wish {
    /// The wish in `head`, from which everything is taken that shall not decide what others see: `head` is then what may be
    /// asked of the origin. `None` if the request is for its sender alone; then `head` stays as it is.
    pub(in super::super) fn of(head: &mut request::Parts, route: &Route, is_tls: bool) -> Option<Self> {
        let sharing = route.sharing?;
        if route.drop_authorization {
            head.headers.remove(AUTHORIZATION);
        }
        if !is_shareable(head) {
            return None;
        }
        let mut fields = HeaderMap::with_capacity(8);
        for (name, value) in &head.headers {
            if is_asked_with(name, sharing) {
                fields.append(name, value.clone());
            }
        }
        forward_headers::forward_cookies(&mut fields).ok()?;
        if let Some(codings) = codings(&fields) {
            fields.insert(ACCEPT_ENCODING, codings);
        }
        let mut conditions = HeaderMap::new();
        for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
            for value in head.headers.get_all(&name) {
                conditions.append(&name, value.clone());
            }
        }
        let key = Key {
            room: route.room.clone(),
            is_tls,
            host: fields.get(HOST).cloned(),
            target: head.uri.path_and_query()?.as_str().into(),
            variant: None,
        };
        let is_head = head.method == Method::HEAD;
        head.method = Method::GET;
        head.headers.clone_from(&fields);
        Some(Self { key, fields, conditions, is_head })
    }

    /// Makes of what is asked for all what is asked for this one alone.
    pub(in super::super) fn only_mine(&self, head: &mut request::Parts) {
        if self.is_head {
            head.method = Method::HEAD;
        }
        head.headers.extend(self.conditions.clone());
    }

    /// Where the answer is kept unless it depends on more.
    pub(super) const fn key(&self) -> &Key {
        &self.key
    }

    /// Where it is kept if it depends on `fields`.
    pub(super) fn key_by(&self, fields: &[HeaderName]) -> Key {
        Key { variant: Some(self.variant(fields)), ..self.key.clone() }
    }

    /// These fields and their values. No value holds a line feed.
    pub(super) fn variant(&self, fields: &[HeaderName]) -> Box<[u8]> {
        let mut variant = Vec::new();
        for name in fields {
            variant.extend_from_slice(name.as_str().as_bytes());
            for value in self.fields.get_all(name) {
                variant.push(b':');
                variant.extend_from_slice(value.as_bytes());
                variant.push(b'\n');
            }
            variant.push(b'\n');
        }
        variant.into()
    }

    /// Whether `answer`, to somebody else's request for the same, is the answer to this one.
    pub(super) fn suits(&self, answer: &Answer) -> bool {
        answer.varies_by().is_empty() || *self.variant(answer.varies_by()) == *answer.variant()
    }

    /// Whether the visitor has it already (RFC 9110 §13.2.2).
    pub(super) fn has(&self, headers: &HeaderMap) -> bool {
        if self.conditions.contains_key(IF_NONE_MATCH) {
            let tag = headers.get(http::header::ETAG).and_then(|tag| opaque_tags(tag).next());
            let mut lines = self.conditions.get_all(IF_NONE_MATCH).iter();
            return lines.any(|line| line == "*" || tag.is_some_and(|tag| opaque_tags(line).any(|known| known == tag)));
        }
        let date = |value: Option<&HeaderValue>| httpdate::parse_http_date(value?.to_str().ok()?).ok();
        let (known, changed) =
            (date(self.conditions.get(IF_MODIFIED_SINCE)), date(headers.get(http::header::LAST_MODIFIED)));
        matches!((known, changed), (Some(known), Some(changed)) if changed <= known)
    }
}

impl Key {
    /// In memory.
    pub(super) fn size(&self) -> usize {
        self.target.len()
            + self.host.as_ref().map_or(0, HeaderValue::len)
            + self.variant.as_ref().map_or(0, |variant| variant.len())
    }
}

/// Whether the field reaches the origin. Not many do: whoever comes first must not be able to say something that decides
/// what all the others see and that no `Vary` tells of, such as `X-Original-URL`.
fn is_asked_with(name: &HeaderName, sharing: Sharing) -> bool {
    match name.as_str() {
        "accept" | "accept-encoding" | "accept-language" | "host" | "origin" | "user-agent" => true,
        "cookie" => sharing == Sharing::Admitted,
        name => name.starts_with("sec-ch-"),
    }
}

/// The codings that are taken, always in the same words, so that `Vary: Accept-Encoding` tells no more browsers apart than
/// the origin does.
fn codings(fields: &HeaderMap) -> Option<HeaderValue> {
    static KNOWN: [&str; 4] = ["br", "deflate", "gzip", "zstd"];
    if !fields.contains_key(ACCEPT_ENCODING) {
        return None;
    }
    let is_welcome = |coding: &str| {
        let lines = fields.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|member| {
            let (name, weight) = member.split_once(';').unwrap_or((member, ""));
            let weight = weight.trim().strip_prefix(['q', 'Q']).and_then(|rest| rest.trim().strip_prefix('='));
            let is_refused =
                weight.is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0));
            name.trim().eq_ignore_ascii_case(coding) && !is_refused
        })
    };
    let welcome = KNOWN.into_iter().filter(|coding| is_welcome(coding)).collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(if welcome.is_empty() { "identity" } else { &welcome }).ok()
}

/// What stands in quotes: weak or strong makes no difference here (RFC 9110 §13.1.2).
fn opaque_tags(line: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    line.as_bytes().split(|byte| *byte == b'"').skip(1).step_by(2)
}

#[cfg(test)]
mod tests;
