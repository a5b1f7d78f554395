//! Version 1: a line of text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Told;

/// Reads a line such as `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443`, CRLF included. `None` when it is none.
pub(super) fn parse(line: &[u8]) -> Option<Told> {
    let line = str::from_utf8(line).ok()?.strip_suffix("\r\n")?.strip_prefix("PROXY ")?;
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        // What follows is to be ignored (§2.1).
        ["UNKNOWN", ..] => Some(Told::Itself),
        [family, source, destination, source_port, destination_port] => {
            let (source, _) = (ip(family, source)?, ip(family, destination)?);
            let (port, _) = (port(source_port)?, port(destination_port)?);
            Some(Told::Client { address: SocketAddr::new(source, port), tls: false })
        }
        _ => None,
    }
}

fn ip(family: &str, text: &str) -> Option<IpAddr> {
    match family {
        "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::from),
        "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        _ => None,
    }
}

fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_first_address() {
        for (line, address) in [
            ("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n", "192.0.2.1:56324"),
            ("PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n", "[2001:db8::1]:0"),
        ] {
            let told = Told::Client { address: address.parse().unwrap(), tls: false };
            assert_eq!(parse(line.as_bytes()), Some(told), "{line}");
        }
        assert_eq!(parse(b"PROXY UNKNOWN\r\n"), Some(Told::Itself));
        assert_eq!(parse(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), Some(Told::Itself));
    }

    #[test]
    fn anything_else_is_no_header() {
        for line in [
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443 1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2  443\r\n",
            "PROXY TCP4 192.0.2.1  192.0.2.2 1 443\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 65536 443\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 +1 443\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 01 443\r\n",
            "PROXY TCP4 192.0.2.01 192.0.2.2 1 443\r\n",
            "PROXY TCP4 ::1 ::1 1 443\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.2 1 443\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.2 1 443\r\n",
            "proxy TCP4 192.0.2.1 192.0.2.2 1 443\r\n",
            "PROXY \r\n",
            "GET / HTTP/1.1\r\n",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line:?}");
        }
    }
}
