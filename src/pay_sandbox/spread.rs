//! A duration, or a range from which one is drawn evenly: `300ms`, `100ms..2s`.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// Nothing the provider does by itself takes longer.
const LONGEST: Duration = Duration::from_mins(30);

/// See the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Spread {
    least: Duration,
    most: Duration,
}

/// Why a text is not a [`Spread`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: use a duration such as 300ms, or a range such as 100ms..2s, of at most 30 minutes")]
pub struct SpreadError(String);

impl Spread {
    /// Always the same.
    pub const fn of(duration: Duration) -> Self {
        Self { least: duration, most: duration }
    }

    /// The duration at `place`, from 0 up to 1, between the ends.
    pub(super) fn at(self, place: f64) -> Duration {
        self.least + self.most.saturating_sub(self.least).mul_f64(place.clamp(0.0, 1.0))
    }
}

impl FromStr for Spread {
    type Err = SpreadError;

    fn from_str(text: &str) -> Result<Self, SpreadError> {
        let wrong = || SpreadError(text.to_owned());
        let read = |part: &str| humantime::parse_duration(part.trim()).map_err(|_| wrong());
        let (least, most) = match text.split_once("..") {
            Some((least, most)) => (read(least)?, read(most)?),
            None => (read(text)?, read(text)?),
        };
        if least <= most && most <= LONGEST { Ok(Self { least, most }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // "1m 30s" would be read back too, but an argument is better without a space.
        let text = |duration| humantime::format_duration(duration).to_string().replace(' ', "");
        if self.least == self.most {
            f.write_str(&text(self.least))
        } else {
            write!(f, "{}..{}", text(self.least), text(self.most))
        }
    }
}

impl TryFrom<String> for Spread {
    type Error = SpreadError;

    fn try_from(text: String) -> Result<Self, SpreadError> {
        text.parse()
    }
}

impl From<Spread> for String {
    fn from(spread: Spread) -> Self {
        spread.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["300ms", "100ms..2s", "0s", "1m30s..2m", "30m"] {
            let spread: Spread = text.parse().unwrap();
            assert_eq!(spread.to_string(), text);
            assert_eq!(serde_json::to_string(&spread).unwrap(), format!("{text:?}"));
        }
        for text in ["", "300", "2s..1s", "..", "1s..", "..1s", "31m", "1s..2s..3s", "-1s"] {
            assert!(text.parse::<Spread>().is_err(), "{text}");
        }
    }

    #[test]
    fn places_lie_between_the_ends() {
        let spread: Spread = "100ms..300ms".parse().unwrap();
        let at = |place| spread.at(place).as_millis();
        assert_eq!((at(0.0), at(0.5), at(1.0)), (100, 200, 300));
    }
}
