//! What the origin says to the gateway in its answer.

use http::{HeaderMap, HeaderName};

static COMMAND: HeaderName = HeaderName::from_static("stanchion-command");
static PIN: HeaderName = HeaderName::from_static("stanchion-pin");
static SOLD_OUT: HeaderName = HeaderName::from_static("stanchion-sold-out");
static CAPACITY: HeaderName = HeaderName::from_static("stanchion-capacity");

/// The headers, read. What is malformed counts as not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Commands {
    /// `Stanchion-Command: release`: the visitor is done, the slot is free.
    pub is_release: bool,
    /// `Stanchion-Pin`: keep the session at least that many seconds.
    pub pin_seconds: Option<u64>,
    /// `Stanchion-Sold-Out: 1`: nothing is left.
    pub is_sold_out: bool,
    /// `Stanchion-Capacity`: it can take that many more visitors.
    pub can_take: Option<u64>,
}

impl Commands {
    /// Reads and removes them.
    pub fn take(headers: &mut HeaderMap) -> Self {
        let mut take = |name: &HeaderName| {
            let value = headers.remove(name)?;
            Some(value.to_str().ok()?.trim().to_owned())
        };
        Self {
            is_release: take(&COMMAND).is_some_and(|command| command.eq_ignore_ascii_case("release")),
            pin_seconds: take(&PIN).and_then(|seconds| seconds.parse().ok()),
            is_sold_out: take(&SOLD_OUT).is_some_and(|value| value == "1"),
            can_take: take(&CAPACITY).and_then(|more| more.parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_read_once_and_gone() {
        let mut headers = HeaderMap::new();
        headers.insert(&COMMAND, "Release".parse().unwrap());
        headers.insert(&PIN, "600".parse().unwrap());
        headers.insert(&SOLD_OUT, "1".parse().unwrap());
        headers.insert(&CAPACITY, "40".parse().unwrap());
        headers.insert("etag", "x".parse().unwrap());
        let read = Commands::take(&mut headers);
        let expected = Commands { is_release: true, pin_seconds: Some(600), is_sold_out: true, can_take: Some(40) };
        assert_eq!(read, expected);
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn nonsense_says_nothing() {
        let mut headers = HeaderMap::new();
        headers.insert(&COMMAND, "explode".parse().unwrap());
        headers.insert(&PIN, "-5".parse().unwrap());
        headers.insert(&SOLD_OUT, "0".parse().unwrap());
        headers.insert(&CAPACITY, "-1".parse().unwrap());
        assert_eq!(Commands::take(&mut headers), Commands::default());
    }
}
