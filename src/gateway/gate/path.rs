//! How origins may read a path. The bytes are forwarded unchanged, so every plausible reading has to count: a path
//! skips the gate only when all of them say so.

/// One path as read literally and as read with everything decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Dot segments resolved (RFC 3986 §5.2.4), nothing else changed.
    literal: String,
    /// Percent-decoded, path parameters (`;…`) and empty segments dropped, then dot segments resolved.
    decoded: String,
    /// Whether a second decoding could still change its meaning, or the encoding is broken. Bytes that are no UTF-8
    /// count: there are origins that take `%c0%ae` for a dot.
    is_doubtful: bool,
}

/// The readings disagree on where the path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ambiguous;

impl Path {
    /// Reads the path of a request target.
    pub fn read(raw: &str) -> Result<Self, Ambiguous> {
        let literal: Vec<&str> = raw.split('/').collect();
        let (bytes, is_broken) = percent_decode(raw);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let decoded: Vec<&str> = text
            .split(['/', '\\'])
            .map(|segment| segment.split_once(';').map_or(segment, |(name, _)| name))
            .filter(|segment| !segment.is_empty())
            .collect();
        let climbs = |segments: &[&str]| segments.iter().filter(|segment| matches!(**segment, "." | "..")).count();
        if raw.contains('\\') || climbs(&literal) != climbs(&decoded) {
            return Err(Ambiguous);
        }
        Ok(Self {
            literal: resolve(literal.get(1..).unwrap_or_default()),
            decoded: resolve(&decoded),
            is_doubtful: is_broken
                || bytes.contains(&b'%')
                || bytes.iter().any(u8::is_ascii_control)
                || std::str::from_utf8(&bytes).is_err(),
        })
    }

    /// Whether some origin may read the path as lying under `prefix`. Letter case does not count: there are origins
    /// that ignore it.
    pub fn may_be_under(&self, prefix: &str) -> bool {
        let prefix = prefix.to_ascii_lowercase();
        self.is_doubtful
            || is_under(&self.literal.to_ascii_lowercase(), &prefix)
            || is_under(&self.decoded.to_ascii_lowercase(), &prefix)
    }

    /// Whether every origin reads the path as lying under `prefix`.
    pub fn is_surely_under(&self, prefix: &str) -> bool {
        !self.is_doubtful && is_under(&self.literal, prefix) && is_under(&self.decoded, prefix)
    }

    /// The path with everything decoded.
    pub fn decoded(&self) -> &str {
        &self.decoded
    }
}

/// Whether `path` is `prefix` or lies under it.
pub(in crate::gateway) fn is_under(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn resolve(segments: &[&str]) -> String {
    let mut kept = Vec::new();
    for segment in segments {
        match *segment {
            "." => {}
            ".." => drop(kept.pop()),
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Decodes every escape; broken ones stay as they are, and are reported.
fn percent_decode(raw: &str) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(raw.len());
    let mut is_broken = false;
    let mut rest = raw.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(hex(*high) << 4 | hex(*low));
                rest = after;
            }
            _ => {
                is_broken |= *first == b'%';
                out.push(*first);
            }
        }
    }
    (out, is_broken)
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traversal_that_readings_disagree_on_is_refused() {
        for raw in [
            "/shop/%2e%2e/healthz",
            "/shop/.%2E/healthz",
            "/healthz/..%2fshop/",
            "/healthz%2f../shop",
            "/assets/..;/shop",
            "/assets/..%5cshop",
            "/assets\\..\\shop",
        ] {
            assert_eq!(Path::read(raw), Err(Ambiguous), "{raw}");
        }
    }

    #[test]
    fn every_spelling_of_a_guarded_path_is_guarded() {
        for raw in [
            "/shop",
            "/shop/",
            "/shop/buy",
            "/SHOP/",
            "//shop/",
            "/shop%2Fbuy",
            "/sh%6fp/",
            "/healthz/../shop/",
            "/healthz;/../shop/",
            "/shop;x=1/buy",
            "/./shop",
            "/healthz%252f",
            "/healthz%zz",
            "/healthz%00",
        ] {
            let path = Path::read(raw).unwrap();
            assert!(path.may_be_under("/shop"), "{raw}");
            assert!(!path.is_surely_under("/healthz"), "{raw}");
        }
        assert!(!Path::read("/shopping").unwrap().may_be_under("/shop"));
    }

    #[test]
    fn only_plain_paths_are_surely_exempt() {
        for raw in ["/hook", "/hook/", "/hook/a%20b", "/hook//x", "/hook/caf%C3%A9", "/hook/a/../b"] {
            assert!(Path::read(raw).unwrap().is_surely_under("/hook"), "{raw}");
        }
        for raw in [
            "/hook/../shop/",
            "/HOOK/",
            "//hook/",
            "/hook;x",
            "/hooks",
            "/hook/%c0%ae%c0%ae/shop",
            "/shop/../../shop",
            "/hook/%2525",
        ] {
            assert!(!Path::read(raw).unwrap().is_surely_under("/hook"), "{raw}");
        }
    }

    #[test]
    fn any_path_at_all_lies_under_the_root() {
        for raw in ["/", "", "*", "/a", "//", "/%"] {
            assert!(Path::read(raw).unwrap().may_be_under("/"), "{raw:?}");
        }
    }
}
