//! Numbers, waits and addresses as a page writes them.

/// `51230` → `51,230`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A wait between `low` and `high` seconds in words. `static/room.js` has the same rules.
pub(super) fn wait((low, high): (u64, u64)) -> String {
    let (low, high) = (low.min(high), low.max(high));
    match (low / 60, high.div_ceil(60)) {
        (_, 0 | 1) => "less than a minute".to_owned(),
        (0, to) => format!("up to {to} minutes"),
        (from, to) if from == to => format!("about {to} minutes"),
        (from, to) if from < 120 => format!("about {from}–{to} minutes"),
        (from, to) => match (from / 60, to.div_ceil(60)) {
            (from, to) if from == to => format!("about {to} hours"),
            (from, to) => format!("about {from}–{to} hours"),
        },
    }
}

/// When the sale opens, for a visitor whose time zone only the script knows.
pub(super) fn utc(unix_ms: u64) -> Option<(String, String)> {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(unix_ms).ok()?).ok()?;
    let shown = time.strftime("%-d %B %Y, %H:%M UTC").to_string();
    Some((time.to_string(), shown))
}

/// JSON that may stand inside a `<script type="application/json">` element: what could end the element or a line is
/// escaped, which inside JSON strings (the only place these characters can be) means the same.
pub(super) fn json_for_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out
}

/// A path on this site, or `/`. Whoever made the link, a page never sends a visitor to another site.
pub(super) fn same_site(to: &str) -> &str {
    let mut bytes = to.bytes();
    let rooted = bytes.next() == Some(b'/');
    // Browsers read `//host`, `/\host` and `/<tab>/host` as another site.
    let plain = !matches!(bytes.next(), Some(b'/' | b'\\')) && !to.bytes().any(|byte| byte.is_ascii_control());
    if rooted && plain { to } else { "/" }
}

/// Percent-encodes everything but unreserved characters (RFC 3986 §2.3).
pub(super) fn query_value(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => {
                out.push('%');
                for nibble in [other >> 4, other & 15] {
                    out.push(char::from(b"0123456789ABCDEF"[usize::from(nibble)]));
                }
            }
        }
    }
    out
}
