use super::*;

const PROXY: &str = "10.0.0.1:80";

fn sender(header: ForwardedHeader, lines: &[(&str, &str)], peer: &str) -> Sender {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let networks = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
    Trust::new(networks, header).sender(&headers, Peer::new(peer.parse().unwrap(), false))
}

fn visitor(lines: &[(&str, &str)]) -> String {
    sender(ForwardedHeader::XForwardedFor, lines, PROXY).visitor.addr.ip().to_string()
}

#[test]
fn nobody_is_believed_by_default() {
    let headers = HeaderMap::from_iter([(X_FORWARDED_FOR.clone(), HeaderValue::from_static("6.6.6.6"))]);
    let sender = Trust::default().sender(&headers, Peer::new(PROXY.parse().unwrap(), false));
    assert_eq!((sender.visitor.addr.to_string(), sender.proxy), (PROXY.to_owned(), None));
}

#[test]
fn a_stranger_speaks_for_itself_only() {
    let claims = [("x-forwarded-for", "6.6.6.6"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "evil.test")];
    let sender = sender(ForwardedHeader::XForwardedFor, &claims, "192.0.2.7:1234");
    assert_eq!((sender.visitor.addr.to_string().as_str(), sender.visitor.tls), ("192.0.2.7:1234", false));
    assert!(sender.chain.is_none() && sender.host.is_none());
}

#[test]
fn the_visitor_is_the_last_one_that_is_no_trusted_proxy() {
    assert_eq!(visitor(&[("x-forwarded-for", "192.0.2.1")]), "192.0.2.1");
    assert_eq!(
        visitor(&[("x-forwarded-for", "6.6.6.6, 192.0.2.1")]),
        "192.0.2.1",
        "the first was the visitor's own claim"
    );
    assert_eq!(visitor(&[("x-forwarded-for", "6.6.6.6, 192.0.2.1, 10.1.1.1,10.2.2.2")]), "192.0.2.1");
    assert_eq!(visitor(&[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "192.0.2.1")]), "192.0.2.1");
    assert_eq!(visitor(&[("x-forwarded-for", "10.9.9.9, 10.1.1.1")]), "10.9.9.9", "all trusted: the farthest");
    assert_eq!(visitor(&[]), "10.0.0.1");
}

#[test]
fn addresses_are_read_however_they_are_written() {
    for (written, read) in [
        ("192.0.2.1:4711", "192.0.2.1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ] {
        assert_eq!(visitor(&[("x-forwarded-for", written)]), read);
    }
}

#[test]
fn what_is_no_address_ends_the_walk() {
    for junk in ["unknown", "", "_hidden", "192.0.2", "1.2.3.4.5", "\u{e9}"] {
        let lines = [("x-forwarded-for", format!("6.6.6.6, {junk}, 10.1.1.1"))].map(|(name, value)| (name, value));
        let lines: Vec<(&str, &str)> = lines.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_ne!(visitor(&lines), "6.6.6.6", "{junk}");
    }
    assert_eq!(visitor(&[("x-forwarded-for", "6.6.6.6, unknown, 10.1.1.1")]), "10.1.1.1");
    assert_eq!(visitor(&[("x-forwarded-for", "6.6.6.6, unknown")]), "10.0.0.1");
}

#[test]
fn scheme_and_host_are_those_the_visitor_came_with() {
    let told = |lines: &[(&str, &str)]| {
        let sender = sender(ForwardedHeader::XForwardedFor, lines, PROXY);
        (sender.visitor.tls, sender.host.map(|host| host.to_str().unwrap().to_owned()))
    };
    let one = [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "shop.test")];
    assert_eq!(told(&one), (true, Some("shop.test".to_owned())));
    assert_eq!(told(&one[1..]), (true, Some("shop.test".to_owned())), "a proxy that tells no address");
    let behind_two = [("x-forwarded-for", "192.0.2.1, 10.1.1.1"), ("x-forwarded-proto", "https")];
    assert!(told(&behind_two).0, "set once, by the first");
    let spoofed = [("x-forwarded-for", "6.6.6.6, 192.0.2.1"), ("x-forwarded-proto", "https, http")];
    assert!(!told(&spoofed).0, "the visitor's own claim stands before the proxy's");
    assert_eq!(told(&[("x-forwarded-host", "a b")]).1, None, "no host");
    assert_eq!(told(&[("x-forwarded-host", "u@evil.test")]).1, None);
}

#[test]
fn only_the_chosen_header_is_believed() {
    let both = [("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.2;proto=https;host=shop.test")];
    assert_eq!(visitor(&both), "192.0.2.1");
    let sender = sender(ForwardedHeader::Forwarded, &both, PROXY);
    assert_eq!((sender.visitor.addr.ip().to_string().as_str(), sender.visitor.tls), ("192.0.2.2", true));
    assert_eq!(sender.host.unwrap(), "shop.test");
    assert_eq!(sender.chain.unwrap().1, "for=192.0.2.2;proto=https;host=shop.test");
}

#[test]
fn the_standard_header_is_read_with_its_quotes() {
    let visitor = |value: &str| {
        let sender = sender(ForwardedHeader::Forwarded, &[("forwarded", value)], PROXY);
        sender.visitor.addr.ip().to_string()
    };
    assert_eq!(visitor("for=\"[2001:db8::1]:80\", For=10.1.1.1"), "2001:db8::1");
    assert_eq!(visitor("for=6.6.6.6, for=192.0.2.1;by=\"10.1.1.1, for=6.6.6.6\""), "192.0.2.1");
    assert_eq!(visitor("for=\"192.0.2.1:80\";host=\"a;b\\\",c\", for=10.1.1.1"), "192.0.2.1");
    assert_eq!(visitor("for=6.6.6.6, nonsense"), "10.0.0.1");
    assert_eq!(visitor("for=unknown"), "10.0.0.1");
    assert_eq!(visitor("\""), "10.0.0.1");
}
