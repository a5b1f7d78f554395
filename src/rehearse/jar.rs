//! One person's cookies.

use std::time::{Duration, Instant};

/// A cookie jar for one host. The `Domain` and `Secure` attributes are not looked at: there is one host, and browsers
/// treat the loopback addresses a rehearsal runs on as secure.
#[derive(Debug, Default)]
pub(super) struct Jar {
    cookies: Vec<Cookie>,
}

struct Cookie {
    name: String,
    value: String,
    path: String,
    dies: Option<Instant>,
}

// Values are credentials.
impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookie").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a `Set-Cookie` line did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Set { name: String, value: String },
    Cleared { name: String },
    Nothing,
}

impl Jar {
    /// Takes one `Set-Cookie` line, as RFC 6265 §5.2 reads it.
    pub(super) fn take(&mut self, line: &str, now: Instant) -> Change {
        let mut parts = line.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return Change::Nothing };
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        let (mut path, mut max_age, mut expires) = ("/".to_owned(), None, None);
        for attribute in parts {
            let (key, argument) = attribute.split_once('=').unwrap_or((attribute, ""));
            let argument = argument.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if argument.starts_with('/') => argument.clone_into(&mut path),
                "max-age" => max_age = argument.parse::<i64>().ok(),
                "expires" => expires = seconds_until(argument),
                _ => {}
            }
        }
        self.cookies.retain(|cookie| cookie.name != name || cookie.path != path);
        let lifetime = max_age.or(expires);
        if lifetime.is_some_and(|seconds| seconds <= 0) {
            return Change::Cleared { name };
        }
        let dies = lifetime
            .and_then(|seconds| u64::try_from(seconds).ok())
            .and_then(|seconds| now.checked_add(Duration::from_secs(seconds)));
        self.cookies.push(Cookie { name: name.clone(), value: value.clone(), path, dies });
        Change::Set { name, value }
    }

    /// The `Cookie` header for a request to `path`.
    pub(super) fn header(&self, path: &str, now: Instant) -> Option<String> {
        let pairs: Vec<String> = self
            .cookies
            .iter()
            .filter(|cookie| cookie.lives(now) && cookie.covers(path))
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Whether there is a live cookie of this name.
    pub(super) fn has(&self, name: &str, now: Instant) -> bool {
        self.cookies.iter().any(|cookie| cookie.name == name && cookie.lives(now))
    }

    /// Whether `text` contains the value of a cookie long enough to be a credential.
    pub(super) fn leaks_into(&self, text: &str) -> bool {
        self.cookies.iter().any(|cookie| cookie.value.len() >= 16 && text.contains(&cookie.value))
    }
}

impl Cookie {
    fn lives(&self, now: Instant) -> bool {
        self.dies.is_none_or(|dies| now < dies)
    }

    fn covers(&self, path: &str) -> bool {
        path.strip_prefix(self.path.as_str())
            .is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with(['/', '?']))
    }
}

fn seconds_until(http_date: &str) -> Option<i64> {
    let then = jiff::fmt::rfc2822::parse(http_date).ok()?.timestamp();
    Some(then.as_second() - jiff::Timestamp::now().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_goes_back_where_its_path_says_until_it_dies() {
        let (mut jar, now) = (Jar::default(), Instant::now());
        jar.take("a=1; Path=/; HttpOnly", now);
        jar.take("b=2; Path=/shop; Max-Age=10", now);
        assert_eq!(jar.header("/shop/x", now).as_deref(), Some("a=1; b=2"));
        assert_eq!(jar.header("/shopping", now).as_deref(), Some("a=1"));
        assert_eq!(jar.header("/shop", now + Duration::from_secs(10)).as_deref(), Some("a=1"));
    }

    #[test]
    fn a_cookie_is_cleared_by_age_or_by_date() {
        for line in ["a=; Path=/; Max-Age=0", "a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"] {
            let (mut jar, now) = (Jar::default(), Instant::now());
            jar.take("a=1; Path=/", now);
            assert_eq!(jar.take(line, now), Change::Cleared { name: "a".to_owned() }, "{line}");
            assert!(!jar.has("a", now), "{line}");
        }
    }
}
