//! What a request is after: whether it may create a place, and whether it wants a page or a document.

use http::{
    HeaderMap, Method,
    header::{ACCEPT, ACCESS_CONTROL_REQUEST_METHOD, UPGRADE},
    request,
};

use super::path::Path;

/// How far an unadmitted request may go with the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Is told what the node knows: sub-resources, prefetches, preflights, probes. Takes no place and claims nothing.
    Peek,
    /// Claims with a token, but creates no place.
    LookUp,
    /// Creates a place.
    Join {
        /// May go straight in when nobody waits.
        may_enter: bool,
    },
}

/// What a refused request is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The waiting page.
    Html,
    /// The status document.
    Json,
}

/// What a request is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intent {
    /// How far it may go.
    pub reach: Reach,
    /// What it understands.
    pub format: Format,
}

impl Intent {
    /// Reads it from the head.
    pub fn of(head: &request::Parts, path: &Path) -> Self {
        let format = format(&head.headers);
        let reach = if is_speculative(&head.headers) || is_preflight(head) || is_part(&head.headers, path) {
            Reach::Peek
        } else {
            match head.method {
                Method::GET => Reach::Join { may_enter: true },
                // A form sent by a person: they will see the waiting page, which needs a place to show.
                Method::POST if format == Format::Html => Reach::Join { may_enter: false },
                _ => Reach::LookUp,
            }
        };
        Self { reach, format }
    }
}

/// Pages are for navigations. `Sec-Fetch-Mode` tells them apart; without it, whether JSON is asked for before HTML.
pub fn format(headers: &HeaderMap) -> Format {
    let is_page = match text(headers, "sec-fetch-mode") {
        Some(mode) => mode.eq_ignore_ascii_case("navigate"),
        None => {
            text(headers, "x-requested-with").is_none_or(|by| !by.eq_ignore_ascii_case("XMLHttpRequest"))
                && !prefers_json(headers)
        }
    };
    if is_page { Format::Html } else { Format::Json }
}

/// Whether `Accept` names JSON with a higher quality than HTML (RFC 9110 §12.5.1). Malformed parts are passed over.
fn prefers_json(headers: &HeaderMap) -> bool {
    let (mut html, mut json) = (0.0_f32, 0.0_f32);
    for range in headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','))
    {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |q| q.parse().unwrap_or(0.0));
        match name.as_str() {
            "text/html" | "application/xhtml+xml" | "text/*" => html = html.max(quality),
            "application/json" | "application/*" => json = json.max(quality),
            other if other.ends_with("+json") => json = json.max(quality),
            _ => {}
        }
    }
    json > html
}

/// A browser that loads ahead of the visitor's wish.
fn is_speculative(headers: &HeaderMap) -> bool {
    ["sec-purpose", "purpose", "x-purpose", "x-moz"].iter().filter_map(|name| text(headers, name)).any(|purpose| {
        let purpose = purpose.to_ascii_lowercase();
        ["prefetch", "prerender", "preview"].iter().any(|word| purpose.contains(word))
    })
}

fn is_preflight(head: &request::Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// A part of a page, or something that browsers and machines ask for by themselves.
fn is_part(headers: &HeaderMap, path: &Path) -> bool {
    if headers.contains_key(UPGRADE) || text(headers, "service-worker").is_some() || is_asked_by_machines(path) {
        return true;
    }
    let mode = text(headers, "sec-fetch-mode").unwrap_or_default();
    match text(headers, "sec-fetch-dest") {
        Some("document") => false,
        // A frame of another site never gets our cookies (SameSite=Lax), so each load would take another place.
        Some("iframe" | "frame") => !matches!(text(headers, "sec-fetch-site"), Some("same-origin" | "same-site")),
        Some("empty") => matches!(mode, "no-cors" | "websocket"),
        Some(_) => true,
        None => wants_only_media(headers) || has_media_name(path),
    }
}

const MACHINES: [&str; 9] = [
    "/favicon.ico",
    "/robots.txt",
    "/sitemap.xml",
    "/manifest.json",
    "/browserconfig.xml",
    "/ads.txt",
    "/healthz",
    "/livez",
    "/readyz",
];

fn is_asked_by_machines(path: &Path) -> bool {
    let path = path.decoded();
    MACHINES.contains(&path) || path.starts_with("/apple-touch-icon") || path.starts_with("/.well-known/")
}

/// Browsers without `Sec-Fetch-Dest` ask for images, styles and the like by type.
fn wants_only_media(headers: &HeaderMap) -> bool {
    let first = text(headers, ACCEPT.as_str()).and_then(|accept| accept.split([',', ';']).next()).unwrap_or_default();
    ["image/", "audio/", "video/", "font/", "text/css"].iter().any(|kind| first.trim().starts_with(kind))
}

const MEDIA_NAMES: [&str; 20] = [
    "css",
    "js",
    "mjs",
    "map",
    "png",
    "jpg",
    "jpeg",
    "gif",
    "svg",
    "webp",
    "avif",
    "ico",
    "woff",
    "woff2",
    "ttf",
    "otf",
    "mp3",
    "mp4",
    "webm",
    "webmanifest",
];

fn has_media_name(path: &Path) -> bool {
    let name = path.decoded().rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(_, ending)| MEDIA_NAMES.iter().any(|media| ending.eq_ignore_ascii_case(media)))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(method: &str, path: &str, headers: &[(&str, &str)]) -> Intent {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        Intent::of(&head, &Path::read(path).unwrap())
    }

    const ENTER: Reach = Reach::Join { may_enter: true };

    #[test]
    fn navigations_and_calls_create_places() {
        let chrome = [
            ("accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(intent("GET", "/", &chrome), Intent { reach: ENTER, format: Format::Html });
        assert_eq!(intent("GET", "/", &[]), Intent { reach: ENTER, format: Format::Html });
        assert_eq!(intent("GET", "/", &[("accept", "*/*")]), Intent { reach: ENTER, format: Format::Html });
        let fetch = [("accept", "*/*"), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")];
        assert_eq!(intent("GET", "/api", &fetch), Intent { reach: ENTER, format: Format::Json });
        let axios = [("accept", "application/json, text/plain, */*")];
        assert_eq!(intent("GET", "/api", &axios), Intent { reach: ENTER, format: Format::Json });
    }

    #[test]
    fn forms_wait_for_their_page_and_other_calls_create_nothing() {
        let form = intent("POST", "/buy", &[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]);
        assert_eq!(form, Intent { reach: Reach::Join { may_enter: false }, format: Format::Html });
        let call = intent("POST", "/buy", &[("accept", "application/json")]);
        assert_eq!(call, Intent { reach: Reach::LookUp, format: Format::Json });
        assert_eq!(intent("HEAD", "/", &[]).reach, Reach::LookUp);
        assert_eq!(intent("OPTIONS", "/", &[]).reach, Reach::LookUp);
    }

    #[test]
    fn parts_prefetches_preflights_and_probes_only_peek() {
        for (method, path, headers) in [
            ("GET", "/x", &[("sec-fetch-dest", "image"), ("sec-fetch-mode", "no-cors")][..]),
            ("GET", "/x", &[("sec-fetch-dest", "script")]),
            ("GET", "/x", &[("sec-fetch-dest", "empty"), ("sec-fetch-mode", "no-cors")]),
            ("GET", "/x", &[("sec-fetch-dest", "iframe"), ("sec-fetch-site", "cross-site")]),
            ("GET", "/", &[("sec-purpose", "prefetch;prerender"), ("sec-fetch-dest", "document")]),
            ("GET", "/", &[("purpose", "prefetch")]),
            ("OPTIONS", "/x", &[("access-control-request-method", "PUT")]),
            ("GET", "/x.png", &[("accept", "image/png")]),
            ("GET", "/x", &[("accept", "image/avif,image/webp,*/*;q=0.8")]),
            ("GET", "/app.js", &[("accept", "*/*")]),
            ("GET", "/socket", &[("upgrade", "websocket")]),
            ("GET", "/favicon.ico", &[]),
            ("GET", "/robots.txt", &[]),
            ("GET", "/apple-touch-icon-120x120.png", &[]),
            ("GET", "/.well-known/security.txt", &[]),
            ("GET", "/healthz", &[]),
        ] {
            assert_eq!(intent(method, path, headers).reach, Reach::Peek, "{method} {path} {headers:?}");
        }
    }

    #[test]
    fn accept_is_weighed_not_matched() {
        for (accept, json) in [
            ("text/html;q=0.5, application/json", true),
            ("application/json;q=0.5, text/html", false),
            ("application/problem+json", true),
            ("ar,*;q=abc", false),
            ("application/json;q=abc", false),
        ] {
            let found = intent("GET", "/", &[("accept", accept)]).format;
            assert_eq!(found == Format::Json, json, "{accept}");
        }
    }
}
