//! Where a visitor goes once let in: always a path on this site.

use http::{
    header::{HOST, REFERER},
    request,
};

/// Longest target kept; a longer one becomes `/`.
const MOST_BYTES: usize = 2_048;

/// `to` if it leads to this site and can stand in a header, else `/`.
///
/// Browsers read `\` as `/` and drop tabs and line ends, so `/\evil.test` and `/<tab>/evil.test` lead elsewhere.
pub fn same_site<'a>(to: &'a str, prefix: &str) -> &'a str {
    let path = to.split(['?', '#']).next().unwrap_or_default();
    let is_ours = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains('\\')
        && to.len() <= MOST_BYTES
        && to.bytes().all(|byte| byte.is_ascii_graphic())
        // The room's own addresses are not what anybody waits for.
        && !path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_ours { to } else { "/" }
}

/// Percent-encodes what may not stand in a header, so that a target typed by a person is kept.
pub fn encoded(to: &str) -> String {
    escape(to, |byte| byte == b' ' || byte >= 0x80)
}

/// Percent-encodes `to` as the value of a query parameter.
pub fn query_value(to: &str) -> String {
    escape(to, |byte| !byte.is_ascii_alphanumeric() && !b"/-_.~".contains(&byte))
}

fn escape(text: &str, must: impl Fn(u8) -> bool) -> String {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if must(byte) {
            out.extend(['%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

/// Where the sender of a request wanted to go: its own target, or for a form the page it stood on, because the
/// form's target may not be there for a `GET`.
pub fn of_request(head: &request::Parts) -> String {
    if head.method == http::Method::GET || head.method == http::Method::HEAD {
        return head.uri.path_and_query().map_or_else(|| "/".to_owned(), |target| encoded(target.as_str()));
    }
    referring_page(head).unwrap_or_else(|| "/".to_owned())
}

fn referring_page(head: &request::Parts) -> Option<String> {
    let referrer: http::Uri = head.headers.get(REFERER)?.to_str().ok()?.parse().ok()?;
    let host = head.headers.get(HOST)?.to_str().ok()?;
    let is_ours = referrer.authority()?.as_str().eq_ignore_ascii_case(host);
    is_ours.then(|| referrer.path_and_query().map(ToString::to_string)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_site_are_kept() {
        for to in [
            "//evil.test",
            "/\\evil.test",
            "/\t/evil.test",
            "https:evil.test",
            "https://shop.test@evil.test",
            "https://evil-shop.test",
            "javascript:alert(1)",
            "evil",
            "",
            "/a\r\nSet-Cookie: x",
            "/__room/main/status",
            "/__room",
            "/shop\\..\\x",
        ] {
            assert_eq!(same_site(to, "/__room"), "/", "{to:?}");
        }
        for to in ["/", "/r?u=https://x/y|1", "/shop/a%20b?c=d&e=\\f#g", "/__roomy"] {
            assert_eq!(same_site(to, "/__room"), to);
        }
        assert_eq!(same_site(&format!("/{}", "a".repeat(MOST_BYTES)), "/__room"), "/");
    }

    #[test]
    fn what_no_header_can_hold_is_encoded() {
        assert_eq!(encoded("/café au lait?x=%20"), "/caf%C3%A9%20au%20lait?x=%20");
        assert_eq!(query_value("/a?b=c&d=%20"), "/a%3Fb%3Dc%26d%3D%2520");
    }
}
