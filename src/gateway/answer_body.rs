//! The body of an answer on its way out, and the request that is under way until it has ended.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::{Body, BoxError, connection::InProgress};

/// What the connection sends.
#[derive(Debug)]
pub(super) struct AnswerBody {
    body: Body,
    _in_progress: Option<InProgress>,
}

impl AnswerBody {
    pub(super) const fn new(body: Body, in_progress: Option<InProgress>) -> Self {
        Self { body, _in_progress: in_progress }
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
