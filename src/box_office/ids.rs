//! Names of holds and orders: a letter and 128 random bits. Knowing one is the right to act on it.

use std::{fmt, str::FromStr};

/// The text is not such a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier of this kind")]
pub struct InvalidId;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// A new one, from a cryptographic generator.
            pub fn random() -> Self {
                Self(format!(concat!($prefix, "{:032x}"), rand::random::<u128>()))
            }

            /// One of a given number: for what is nobody's right, such as a race among buyers that do not exist.
            pub fn numbered(number: u128) -> Self {
                Self(format!(concat!($prefix, "{:032x}"), number))
            }

            /// As text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let digits = text.strip_prefix($prefix).ok_or(InvalidId)?;
                let fits = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
                if fits { Ok(Self(text.to_owned())) } else { Err(InvalidId) }
            }
        }

        /// Shows the first digits only: the whole is a right.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}…", self.0.get(..8).unwrap_or_default())
            }
        }
    };
}

id!(
    /// A hold. The store tells holds from sales by its first letters.
    HoldId, "h_"
);
id!(
    /// An order. The store tells sales from holds by its first letters.
    OrderId, "o_"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_wrote_and_nothing_else() {
        let hold = HoldId::random();
        assert_eq!(hold.as_str().parse::<HoldId>().unwrap(), hold);
        assert!(hold.as_str().parse::<OrderId>().is_err());
        for bad in ["", "h_", "h_12", &hold.as_str().to_uppercase(), &format!("{}0", hold.as_str())] {
            assert!(bad.parse::<HoldId>().is_err(), "{bad:?}");
        }
        assert!(!format!("{hold:?}").contains(hold.as_str()));
    }
}
