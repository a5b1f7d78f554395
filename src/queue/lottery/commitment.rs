//! What is published before anybody comes, as text.

use std::fmt;

/// What binds the operator: `nonce:hash`, and `:beacon` behind it where a beacon's output is the public value. Where nothing
/// stands there, the roster's digest is. One text, because it is published, kept and signed as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commitment<'a> {
    /// By which the operator finds the seed again.
    pub nonce: &'a str,
    /// SHA-256 of the seed, hex.
    pub seed_hash: &'a str,
    /// The round of a randomness beacon.
    pub beacon: Option<&'a str>,
}

impl<'a> Commitment<'a> {
    /// Reads a published commitment.
    pub fn read(text: &'a str) -> Option<Self> {
        // A beacon's name may have colons of its own.
        let mut parts = text.splitn(3, ':');
        Some(Self { nonce: parts.next()?, seed_hash: parts.next()?, beacon: parts.next() })
    }
}

impl fmt::Display for Commitment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.nonce, self.seed_hash)?;
        self.beacon.map_or(Ok(()), |beacon| write!(f, ":{beacon}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Commitment;

    #[test]
    fn a_commitment_is_read_as_it_was_written() {
        for text in ["n:c0ffee", "n:c0ffee:drand quicknet round 5", "n:c0ffee:https://beacon.test/round:5", "n:c0ffee:"]
        {
            assert_eq!(Commitment::read(text).unwrap().to_string(), text);
        }
        assert_eq!(Commitment::read("n:c0ffee").unwrap().beacon, None);
        assert_eq!(Commitment::read("n:c0ffee:a:b").unwrap().beacon, Some("a:b"));
        assert_eq!(Commitment::read("c0ffee"), None);
    }
}
