//! An answer that is kept, and how it is given.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{
        ACCEPT_ENCODING, AGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, TRAILER,
    },
    response,
};
use tokio::time::Instant;

use super::{
    super::{
        Body, body,
        forward_headers::{self, X_REQUEST_ID},
    },
    rules::{self, Life},
    wish::Wish,
};

/// A whole answer.
#[derive(Debug)]
pub(in super::super) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    life: Life,
    asked_at: Instant,
    varies_by: Box<[HeaderName]>,
    variant: Box<[u8]>,
}

/// The head of an answer that may be kept, until its body is there.
#[derive(Debug)]
pub(super) struct Keepable {
    life: Life,
    varies_by: Box<[HeaderName]>,
}

impl Keepable {
    /// `None` if the origin does not say that it may.
    pub(super) fn check(head: &response::Parts) -> Option<Self> {
        let life = rules::life(head, std::time::SystemTime::now())?;
        let mut varies_by = rules::varies_by(&head.headers)?;
        // Common servers compress and do not say that this depends on what the visitor takes.
        if head.headers.contains_key(CONTENT_ENCODING) && !varies_by.contains(&ACCEPT_ENCODING) {
            varies_by.push(ACCEPT_ENCODING);
        }
        Some(Self { life, varies_by: varies_by.into() })
    }
}

impl Answer {
    /// Keeps what belongs to everybody: nothing that the origin says to the gateway or of this one request.
    pub(super) fn new(head: &response::Parts, body: Bytes, keepable: Keepable, wish: &Wish, asked_at: Instant) -> Self {
        let mut headers = head.headers.clone();
        forward_headers::strip_commands(&mut headers);
        for name in [&X_REQUEST_ID, &TRAILER, &AGE] {
            headers.remove(name);
        }
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        let Keepable { life, varies_by } = keepable;
        let variant = wish.variant(&varies_by);
        Self { status: head.status, headers, body, life, asked_at, varies_by, variant }
    }

    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        now < self.asked_at + self.life.fresh
    }

    pub(super) fn may_serve_meanwhile(&self, now: Instant) -> bool {
        now < self.asked_at + self.life.fresh + self.life.meanwhile
    }

    pub(super) fn may_replace_error(&self, now: Instant) -> bool {
        now < self.asked_at + self.life.fresh + self.life.on_error.max(self.life.meanwhile)
    }

    pub(super) const fn varies_by(&self) -> &[HeaderName] {
        &self.varies_by
    }

    pub(super) const fn variant(&self) -> &[u8] {
        &self.variant
    }

    /// In memory.
    pub(super) fn size(&self) -> usize {
        let fields = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 64).sum::<usize>();
        fields + self.body.len() + self.variant.len()
    }

    /// As the answer to `wish`.
    pub(in super::super) fn to(&self, wish: &Wish) -> Response<Body> {
        let is_known = self.status == StatusCode::OK && wish.has(&self.headers);
        let mut answer =
            Response::new(if is_known || wish.is_head { body::empty() } else { body::full(self.body.clone()) });
        *answer.headers_mut() = self.headers.clone();
        let age = self.life.age + self.asked_at.elapsed();
        answer.headers_mut().insert(AGE, HeaderValue::from(age.as_secs()));
        *answer.status_mut() = self.status;
        if is_known {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            for name in [CONTENT_LENGTH, CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE] {
                answer.headers_mut().remove(name);
            }
        }
        answer
    }
}
