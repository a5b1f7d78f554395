//! Fields that end at the next hop (RFC 9110 §7.6.1), and the one exception: an upgrade to WebSocket.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Version,
    header::{
        CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
    },
    request,
};

/// Hop-by-hop whether or not `Connection` names them. `Trailer` is not: it belongs to the message.
static ALWAYS: [HeaderName; 9] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Removes every hop-by-hop field, those that `Connection` names included.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = tokens(headers, &CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token).ok())
        // A sender that names these would have us change what the message means, not how it travels.
        .filter(|name| name != HOST && name != CONTENT_LENGTH)
        .collect();
    for name in ALWAYS.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Whether the sender takes trailers, which the next hop has to be told anew.
pub(super) fn takes_trailers(headers: &HeaderMap) -> bool {
    tokens(headers, &TE).any(|token| token.eq_ignore_ascii_case(b"trailers"))
}

/// Says to the next hop that trailers are welcome.
pub(super) fn offer_trailers(headers: &mut HeaderMap) {
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.append(CONNECTION, HeaderValue::from_static("te"));
}

/// The `Upgrade` of a request that wants a WebSocket. No other protocol is relayed: an `h2c` upgrade would open a
/// channel past the gate.
pub(super) fn wanted_websocket(head: &request::Parts) -> Option<HeaderValue> {
    let asks = head.version == Version::HTTP_11
        && head.method == Method::GET
        && tokens(&head.headers, &CONNECTION).any(|token| token.eq_ignore_ascii_case(b"upgrade"));
    let mut protocols = head.headers.get_all(UPGRADE).iter();
    match (protocols.next(), protocols.next()) {
        (Some(only), None) if asks && only.as_bytes().eq_ignore_ascii_case(b"websocket") => Some(only.clone()),
        _ => None,
    }
}

/// Puts an upgrade back that [`strip`] took away.
pub(super) fn offer_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(UPGRADE, protocol);
    headers.append(CONNECTION, HeaderValue::from_static("upgrade"));
}

/// The comma-separated members of all lines of a field.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers.get_all(name).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn what_connection_names_goes_and_framing_stays() {
        let mut headers = headers(&[
            ("connection", "close, X-Private"),
            ("connection", "x-other,content-length , host"),
            ("x-private", "1"),
            ("x-other", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQ"),
            ("host", "shop.test"),
            ("content-length", "5"),
            ("trailer", "x-sum"),
        ]);
        strip(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "trailer"]);
    }

    #[test]
    fn only_a_websocket_is_an_upgrade() {
        let wanted = |connection: &str, upgrade: &str| {
            let request = Request::get("/").header(CONNECTION, connection).header(UPGRADE, upgrade);
            wanted_websocket(&request.body(()).unwrap().into_parts().0).is_some()
        };
        assert!(wanted("keep-alive, UPGRADE", "WebSocket"));
        assert!(!wanted("upgrade-insecure-requests", "websocket"));
        assert!(!wanted("keep-alive", "websocket"));
        assert!(!wanted("Upgrade, HTTP2-Settings", "h2c"));
        assert!(!wanted("upgrade", "websocket, h2c"));
    }
}
