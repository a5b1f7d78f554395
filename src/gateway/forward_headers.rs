//! What the origin is told about the visitor, and what the visitor may not tell it.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, COOKIE, FORWARDED, HOST, InvalidHeaderValue},
};

use super::{Route, trust::Sender};

static STANCHION_ROOM: HeaderName = HeaderName::from_static("stanchion-room");
static STANCHION_VISITOR: HeaderName = HeaderName::from_static("stanchion-visitor");
static STANCHION_SESSION_EXPIRES: HeaderName = HeaderName::from_static("stanchion-session-expires");
pub(super) static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(super) static X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// The name under which a request is known on both sides.
pub(super) static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Whether only the gateway may send this field to the origin. CGI-like applications cannot tell `_` from `-`, and
/// some servers make `_` of every other sign too, so all these spellings are the same names.
pub(super) fn is_reserved(name: &HeaderName) -> bool {
    let is = |wanted: &str| spelled(name.as_str(), wanted) && name.as_str().len() == wanted.len();
    let starts = |wanted: &str| spelled(name.as_str(), wanted);
    match name.as_str().as_bytes().first() {
        Some(b's') => starts("stanchion-"),
        Some(b'f') => is("forwarded"),
        Some(b'x') => starts("x-forwarded-") || is("x-real-ip") || is("x-request-id"),
        _ => false,
    }
}

fn spelled(name: &str, wanted: &str) -> bool {
    name.len() >= wanted.len()
        && name
            .bytes()
            .zip(wanted.bytes())
            .all(|(byte, wanted)| byte == wanted || (wanted == b'-' && !byte.is_ascii_alphanumeric()))
}

/// Removes every [reserved](is_reserved) field.
pub(super) fn strip_reserved(headers: &mut HeaderMap) {
    let reserved: Vec<HeaderName> = headers.keys().filter(|name| is_reserved(name)).cloned().collect();
    for name in reserved {
        headers.remove(name);
    }
}

/// Removes what an origin's answer says to the gateway.
pub(super) fn strip_commands(headers: &mut HeaderMap) {
    let commands: Vec<HeaderName> =
        headers.keys().filter(|name| spelled(name.as_str(), "stanchion-")).cloned().collect();
    for name in commands {
        headers.remove(name);
    }
}

/// Removes what the visitor claims about itself and the gateway's own tokens; then says what the gateway knows.
///
/// # Errors
/// Never in practice: every value made here is visible ASCII.
pub(super) fn replace(
    headers: &mut HeaderMap,
    route: &Route,
    sender: &Sender,
    request_id: &HeaderValue,
) -> Result<(), InvalidHeaderValue> {
    strip_reserved(headers);
    forward_cookies(headers)?;
    if route.drop_authorization {
        headers.remove(AUTHORIZATION);
    }
    headers.insert(&STANCHION_ROOM, HeaderValue::from_str(route.room.as_str())?);
    if let Some(visitor) = route.visitor {
        headers.insert(&STANCHION_VISITOR, HeaderValue::from_str(&visitor.to_string())?);
    }
    if let Some(expires) = route.session_expires {
        headers.insert(&STANCHION_SESSION_EXPIRES, HeaderValue::from(expires));
    }
    let proto = if sender.visitor.tls { "https" } else { "http" };
    headers.insert(FORWARDED, forwarded(sender, proto, headers.get(HOST))?);
    headers.insert(&X_FORWARDED_FOR, forwarded_for(sender)?);
    headers.insert(&X_FORWARDED_PROTO, HeaderValue::from_static(proto));
    if let Some(host) = headers.get(HOST).cloned() {
        headers.insert(&X_FORWARDED_HOST, host);
    }
    headers.insert(&X_REQUEST_ID, request_id.clone());
    Ok(())
}

/// What the proxies wrote, if any is trusted, and at the end the other side of the connection.
fn forwarded_for(sender: &Sender) -> Result<HeaderValue, InvalidHeaderValue> {
    let visitor = sender.visitor.addr.ip();
    match (&sender.chain, sender.proxy) {
        (Some((name, chain)), Some(proxy)) if *name == X_FORWARDED_FOR => {
            HeaderValue::from_bytes(&[chain.as_bytes(), b", ", proxy.to_string().as_bytes()].concat())
        }
        (_, Some(proxy)) => HeaderValue::from_str(&format!("{visitor}, {proxy}")),
        _ => HeaderValue::from_str(&visitor.to_string()),
    }
}

fn forwarded(sender: &Sender, proto: &str, host: Option<&HeaderValue>) -> Result<HeaderValue, InvalidHeaderValue> {
    if let (Some((name, chain)), Some(proxy)) = (&sender.chain, sender.proxy)
        && *name == FORWARDED
    {
        return HeaderValue::from_bytes(&[chain.as_bytes(), b", for=", node(proxy).as_bytes()].concat());
    }
    let mut value = format!("for={}", node(sender.visitor.addr.ip()));
    // `Host` was checked to be an authority: nothing in it can end the quotes.
    if let Some(host) = host.and_then(|host| host.to_str().ok()) {
        value.push_str(";host=\"");
        value.push_str(host);
        value.push('"');
    }
    value.push_str(";proto=");
    value.push_str(proto);
    if let Some(proxy) = sender.proxy {
        value.push_str(", for=");
        value.push_str(&node(proxy));
    }
    HeaderValue::from_str(&value)
}

/// RFC 7239 §6: an IPv6 address needs brackets, and with them quotes.
fn node(address: IpAddr) -> String {
    match address {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("\"[{ip}]\""),
    }
}

/// Takes the gateway's cookies out, and makes one line of those that HTTP/2 split (RFC 9113 §8.2.3). The bytes of
/// the other cookies stay as they are, whether text or not.
pub(super) fn forward_cookies(headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
    let lines = headers.get_all(COOKIE).iter().count();
    let has_ours = headers.get_all(COOKIE).iter().any(|line| pairs(line).any(is_ours));
    if lines == 0 || (lines == 1 && !has_ours) {
        return Ok(());
    }
    let others: Vec<&[u8]> =
        headers.get_all(COOKIE).iter().flat_map(pairs).filter(|pair| !pair.is_empty() && !is_ours(pair)).collect();
    if others.is_empty() {
        headers.remove(COOKIE);
    } else {
        let line = HeaderValue::from_bytes(&others.join(&b"; "[..]))?;
        headers.insert(COOKIE, line);
    }
    Ok(())
}

fn pairs(line: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    line.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii)
}

fn is_ours(pair: &[u8]) -> bool {
    pair.starts_with(b"stanchion_q_") || pair.starts_with(b"stanchion_s_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::server::ForwardedHeader,
        gateway::{Peer, trust::Trust},
        queue::VisitorId,
    };

    fn replaced(lines: &[(&str, &[u8])], addr: &str) -> HeaderMap {
        replaced_by(&Trust::default(), lines, addr)
    }

    fn replaced_by(trust: &Trust, lines: &[(&str, &[u8])], addr: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let route = Route {
            room: "main".parse().unwrap(),
            visitor: Some(VisitorId::from_bits(0)),
            session_expires: Some(1_700_000_000),
            drop_authorization: false,
            sharing: None,
        };
        let sender = trust.sender(&headers, Peer::new(addr.parse().unwrap(), false));
        replace(&mut headers, &route, &sender, &HeaderValue::from_static("id")).unwrap();
        headers
    }

    #[test]
    fn claims_are_replaced_in_every_spelling() {
        let claims = ["forwarded", "x-real-ip", "x_real_ip", "stanchion-visitor", "stanchion_visitor", "stanchion.new"];
        let more = ["x-forwarded-for", "x_forwarded_for", "x-forwarded_host", "x-forwarded-anything", "x-request-id"];
        let lines: Vec<_> = claims.iter().chain(&more).map(|name| (*name, &b"6.6.6.6"[..])).collect();
        let headers = replaced(&lines, "1.2.3.4:5");
        assert!(headers.values().all(|value| value != "6.6.6.6"), "{headers:?}");
        assert_eq!(headers["stanchion-room"], "main");
        assert_eq!(headers["stanchion-visitor"], "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(headers["stanchion-session-expires"], "1700000000");
        assert_eq!(headers["x-forwarded-for"], "1.2.3.4");
    }

    #[test]
    fn names_that_only_look_alike_pass() {
        let headers = replaced(&[("x-forward", b"1"), ("forwarded-by", b"1"), ("x-request-id-2", b"1")], "1.2.3.4:5");
        assert_eq!(headers.values().filter(|value| *value == "1").count(), 3);
    }

    #[test]
    fn addresses_are_written_as_the_standards_want() {
        let written = |addr: &str| {
            let headers = replaced(&[("host", b"shop.test:8080")], addr);
            (headers["forwarded"].to_str().unwrap().to_owned(), headers["x-forwarded-for"].to_str().unwrap().to_owned())
        };
        let (forwarded, plain) = written("[::1]:5");
        assert_eq!(forwarded, "for=\"[::1]\";host=\"shop.test:8080\";proto=http");
        assert_eq!(plain, "::1");
        let (forwarded, plain) = written("[::ffff:1.2.3.4]:5");
        assert!(forwarded.starts_with("for=1.2.3.4;"), "{forwarded}");
        assert_eq!(plain, "1.2.3.4");
    }

    #[test]
    fn what_a_trusted_proxy_says_is_continued() {
        let networks = vec!["10.0.0.0/8".parse().unwrap()];
        let lines: [(&str, &[u8]); 4] = [
            ("host", b"shop.test"),
            ("x-forwarded-for", b"6.6.6.6, 192.0.2.1"),
            ("x-forwarded-proto", b"https"),
            ("forwarded", b"for=7.7.7.7"),
        ];
        let one = replaced_by(&Trust::new(networks.clone(), ForwardedHeader::XForwardedFor), &lines, "10.0.0.1:5");
        assert_eq!(one["x-forwarded-for"], "6.6.6.6, 192.0.2.1, 10.0.0.1");
        assert_eq!(one["forwarded"], "for=192.0.2.1;host=\"shop.test\";proto=https, for=10.0.0.1");
        assert_eq!(one["x-forwarded-proto"], "https");
        let other = replaced_by(&Trust::new(networks, ForwardedHeader::Forwarded), &lines, "10.0.0.1:5");
        assert_eq!(other["forwarded"], "for=7.7.7.7, for=10.0.0.1");
        assert_eq!(other["x-forwarded-for"], "7.7.7.7, 10.0.0.1");
        assert_eq!(other["x-forwarded-proto"], "http");
    }

    #[test]
    fn cookies_of_others_keep_their_bytes() {
        let cookies = |lines: &[&[u8]]| {
            let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
            let headers = replaced(&lines, "1.2.3.4:5");
            headers.get_all(COOKIE).iter().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(cookies(&[b"junk=\xff;a=1;  b=\"2\""]), [b"junk=\xff;a=1;  b=\"2\"".to_vec()]);
        assert_eq!(cookies(&[b"junk=\xff; stanchion_s_main=t; b=2"]), [b"junk=\xff; b=2".to_vec()]);
        assert_eq!(cookies(&[b"a=1", b"stanchion_q_main=t", b"b=2"]), [b"a=1; b=2".to_vec()]);
        assert_eq!(cookies(&[b"stanchion_q_main=t"]), Vec::<Vec<u8>>::new());
        assert_eq!(cookies(&[b"stanchion_qq=1"]), [b"stanchion_qq=1".to_vec()]);
    }
}
