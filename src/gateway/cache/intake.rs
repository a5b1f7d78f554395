//! Reads an answer in full, as long as it is worth it.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use super::super::{Body, BoxError, body};

/// What came of reading a body.
pub(super) enum Intake {
    /// This is all.
    Whole(Bytes),
    /// It is too much, or takes too long. Nothing of it is lost.
    Unfinished(Body),
    /// It broke off.
    Broken(BoxError),
}

/// Reads at most `most_bytes` of `body`, until `deadline`. Trailers are left out, as RFC 9110 §6.5.1 allows.
pub(super) async fn read(mut body: Body, most_bytes: usize, deadline: Instant) -> Intake {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if expected > most_bytes {
        return Intake::Unfinished(body);
    }
    let mut read = BytesMut::with_capacity(expected);
    loop {
        match timeout_at(deadline, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    read.extend_from_slice(&data);
                }
            }
            Ok(Some(Err(error))) => return Intake::Broken(error),
            Ok(None) => return Intake::Whole(read.freeze()),
            Err(_late) => return unfinished(read, body),
        }
        if read.len() > most_bytes {
            return unfinished(read, body);
        }
    }
}

fn unfinished(read: BytesMut, rest: Body) -> Intake {
    Intake::Unfinished(body::streamed(Resumed { read: Some(read.freeze()).filter(|read| !read.is_empty()), rest }))
}

/// What was read already, then the rest.
struct Resumed {
    read: Option<Bytes>,
    rest: Body,
}

impl http_body::Body for Resumed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.read.take() {
            Some(read) => Poll::Ready(Some(Ok(Frame::data(read)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.read.as_ref().map_or(0, Bytes::len);
        let (read, rest) = (u64::try_from(read).unwrap_or(u64::MAX), self.rest.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}
