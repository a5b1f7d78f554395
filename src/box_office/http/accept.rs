//! JSON or a page: what a client would rather have (RFC 9110 §12.5.1).

use axum::http::{HeaderMap, header};

/// Whether the client prefers a page. Without a clear wish it gets JSON.
pub fn wants_page(headers: &HeaderMap) -> bool {
    let (mut page, mut json) = (None, None);
    let mut wildcard = 0.0_f32;
    for value in headers.get_all(header::ACCEPT) {
        for range in String::from_utf8_lossy(value.as_bytes()).split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts
                .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
                .map_or(1.0, |text| text.parse::<f32>().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0));
            match name.as_str() {
                "text/html" | "application/xhtml+xml" => page = page.max(Some(Quality(quality))),
                "application/json" | "application/problem+json" => json = json.max(Some(Quality(quality))),
                "*/*" => wildcard = quality,
                _ => {}
            }
        }
    }
    let (page, json) = (page.map_or(0.0, |q| q.0), json.map_or(wildcard, |q| q.0));
    page > 0.0 && page >= json
}

/// A quality between 0 and 1: never NaN, so it has an order.
#[derive(PartialEq, PartialOrd, Clone, Copy)]
struct Quality(f32);

impl Eq for Quality {}

#[expect(clippy::derive_ord_xor_partial_ord, reason = "the derived partial order is total without NaN")]
impl Ord for Quality {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_pages_and_programs_get_json() {
        for (accept, page) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("text/html", true),
            ("text/html;q=0.9, application/json;q=0.5", true),
            ("application/json, text/plain, */*", false),
            ("application/json, text/html;q=0.9", false),
            ("*/*", false),
            ("text/html;q=0", false),
            ("text/html;q=nonsense", false),
            ("text/html;q=NaN", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(wants_page(&headers), page, "{accept}");
        }
        assert!(!wants_page(&HeaderMap::new()));
    }
}
