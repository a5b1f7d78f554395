//! `Forwarded` (RFC 7239).

use http::{HeaderMap, header::FORWARDED};

use super::{Hop, address, is_tls};

/// The hops that all lines of the field tell, the nearest last.
pub(super) fn hops(headers: &HeaderMap) -> Vec<Hop> {
    let lines = headers.get_all(FORWARDED).iter().map(|line| line.to_str().unwrap_or("unreadable"));
    lines.flat_map(|line| split(line, b',')).map(hop).collect()
}

fn hop(element: &str) -> Hop {
    let mut hop = Hop::default();
    for pair in split(element, b';') {
        let Some((name, value)) = pair.split_once('=') else { return Hop::default() };
        let value = unquoted(value.trim());
        match name.trim().to_ascii_lowercase().as_str() {
            "for" => hop.address = address(&value),
            "proto" => hop.tls = is_tls(&value),
            "host" => hop.host = Some(value),
            _ => {}
        }
    }
    hop
}

/// Splits where the separator stands outside quotes.
fn split(text: &str, separator: u8) -> Vec<&str> {
    let (mut parts, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if byte == separator && !quoted => {
                parts.push(text.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut escaped = false;
    inner
        .chars()
        .filter(|&character| {
            escaped = character == '\\' && !escaped;
            !escaped
        })
        .collect()
}
