//! The origin's answer on its way out: cleaned of what was meant for us, and streamed under a deadline.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, CONTENT_LOCATION, LOCATION, TRANSFER_ENCODING},
    response,
};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;

use super::{
    BoxError, GatewayError,
    connection::Connection,
    hop_by_hop,
    idle::Idle,
    parallel::Share,
    upstream::{Lease, Permit},
};

/// Marks an answer whose end is that of the connection, so that nobody can tell whether it came in full.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndsWithConnection;

/// Makes an origin's head fit to be sent on.
pub(super) fn clean(head: &mut response::Parts, origin: &Uri) {
    // The version is the origin's affair; hyper adapts the answer to the client's.
    head.version = Version::HTTP_11;
    let reason = head.extensions.remove::<hyper::ext::ReasonPhrase>();
    head.extensions = http::Extensions::new();
    if let Some(reason) = reason {
        head.extensions.insert(reason);
    }
    // RFC 9112 §6.3: beside a transfer coding a length means nothing, and the coding ends here.
    let coded = head.headers.contains_key(TRANSFER_ENCODING);
    hop_by_hop::strip(&mut head.headers);
    if coded || head.status == StatusCode::NO_CONTENT {
        head.headers.remove(CONTENT_LENGTH);
    }
    for name in [LOCATION, CONTENT_LOCATION] {
        hide_origin(&mut head.headers, &name, origin);
    }
}

/// Makes a link to the origin's own address relative: visitors cannot reach it and should not learn it.
fn hide_origin(headers: &mut HeaderMap, name: &http::HeaderName, origin: &Uri) {
    let Some(inside) = headers.get(name).and_then(|link| link.to_str().ok()?.parse::<Uri>().ok()) else { return };
    let (Some(target), Some(own)) = (inside.authority(), origin.authority()) else { return };
    let same = target.host().eq_ignore_ascii_case(own.host())
        && target.port_u16().unwrap_or(80) == own.port_u16().unwrap_or(80)
        && inside.scheme() == origin.scheme();
    // `Uri` forgets fragments, so the rest of the link is cut from its text.
    let Some(rest) = headers.get(name).and_then(|link| after_authority(link.as_bytes())) else { return };
    // A path of two slashes would be read as another host; `/.` in front keeps it a path (RFC 3986 §4.2).
    let prefix: &[u8] = match rest {
        [b'/', b'/', ..] => b"/.",
        [b'/', ..] => b"",
        _ => b"/",
    };
    if let (true, Ok(link)) = (same, HeaderValue::from_bytes(&[prefix, rest].concat())) {
        headers.insert(name, link);
    }
}

fn after_authority(link: &[u8]) -> Option<&[u8]> {
    let start = link.windows(3).position(|three| three == b"://")? + 3;
    let rest = link.get(start..)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    rest.get(end..)
}

/// The origin's body. Holds the permits of its request to the very end, and never ends quietly when cut short.
#[derive(Debug)]
pub(super) struct OriginBody {
    inner: Incoming,
    idle: Idle,
    /// Set when the client could not tell a cut from the end.
    reset_when_cut: Option<Arc<Connection>>,
    lease: Lease,
    _permits: (Permit, Option<Share>),
}

impl OriginBody {
    pub(super) const fn new(
        inner: Incoming,
        idle: Idle,
        reset_when_cut: Option<Arc<Connection>>,
        lease: Lease,
        permits: (Permit, Option<Share>),
    ) -> Self {
        Self { inner, idle, reset_when_cut, lease, _permits: permits }
    }

    fn cut(&self, error: GatewayError) -> BoxError {
        tracing::debug!(error = error.label(), "an answer was cut short");
        if let Some(connection) = &self.reset_when_cut {
            connection.set_reset();
        }
        error.into()
    }
}

impl http_body::Body for OriginBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(piece) = Pin::new(&mut self.inner).poll_frame(cx) else {
            ready!(self.idle.poll_expired(cx));
            return Poll::Ready(Some(Err(self.cut(GatewayError::OriginTimeout))));
        };
        self.idle.touch();
        if matches!(piece, None | Some(Ok(_))) && self.inner.is_end_stream() {
            self.lease.give_back();
        }
        Poll::Ready(piece.map(|piece| piece.map_err(|_| self.cut(GatewayError::OriginInvalid))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    #[test]
    fn links_to_the_origin_become_relative_and_others_stay() {
        let sent = |location: &str| {
            let (mut head, ()) = Response::builder().header(LOCATION, location).body(()).unwrap().into_parts();
            clean(&mut head, &"http://127.0.0.1:9000".parse().unwrap());
            head.headers[LOCATION].to_str().unwrap().to_owned()
        };
        assert_eq!(sent("http://127.0.0.1:9000/x?y=%2F#z"), "/x?y=%2F#z");
        assert_eq!(sent("http://127.0.0.1:9000"), "/");
        assert_eq!(sent("http://127.0.0.1:9000?q"), "/?q");
        assert_eq!(sent("http://127.0.0.1:9000//evil.test/"), "/.//evil.test/");
        for link in ["/x", "x", "http://127.0.0.1:9001/x", "https://127.0.0.1:9000/x", "http://shop.test/x", "//a/b"] {
            assert_eq!(sent(link), link);
        }
    }
}
