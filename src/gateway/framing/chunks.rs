//! A chunked body (RFC 9112 §7.1), up to its last chunk.

use crate::gateway::GatewayError;

/// Where in a body the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// In a size, after so many digits.
    Size { digits: u8, size: u64 },
    /// In what may follow a size, after so many bytes.
    Extension { bytes: u8, size: u64 },
    /// Before the LF that ends a size.
    SizeEnd { size: u64 },
    /// In data, with so many bytes to come.
    Data(u64),
    /// Before the CR LF that ends data.
    DataEnd { cr: bool },
    /// Behind the line of the last chunk.
    Last,
}

/// Sixteen digits would be all there is.
const MOST_DIGITS: u8 = 15;
/// Nobody uses extensions, but attackers do.
const LONGEST_EXTENSION: u8 = 128;

impl Default for Chunks {
    fn default() -> Self {
        Self::Size { digits: 0, size: 0 }
    }
}

impl Chunks {
    pub(super) fn is_last(self) -> bool {
        self == Self::Last
    }

    /// How many of these bytes belong to the body; stops behind the last chunk.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, GatewayError> {
        let mut at = 0;
        while let (Some(&byte), false) = (bytes.get(at), self.is_last()) {
            if let Self::Data(left) = self {
                let there = u64::try_from(bytes.len() - at).unwrap_or(u64::MAX).min(*left);
                *left -= there;
                at += usize::try_from(there).unwrap_or(bytes.len() - at);
                if *left == 0 {
                    *self = Self::DataEnd { cr: false };
                }
            } else {
                *self = self.after(byte).ok_or(GatewayError::BadRequest("a chunk that is none"))?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn after(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Size { digits, size }, _) if byte.is_ascii_hexdigit() && digits < MOST_DIGITS => {
                let digit = char::from(byte).to_digit(16)?;
                Self::Size { digits: digits + 1, size: size * 16 + u64::from(digit) }
            }
            (Self::Size { digits: 1.., size }, b';') => Self::Extension { bytes: 0, size },
            (Self::Size { digits: 1.., size } | Self::Extension { size, .. }, b'\r') => Self::SizeEnd { size },
            (Self::Extension { bytes, size }, b'\t' | 0x20..=0x7e) if bytes < LONGEST_EXTENSION => {
                Self::Extension { bytes: bytes + 1, size }
            }
            (Self::SizeEnd { size: 0 }, b'\n') => Self::Last,
            (Self::SizeEnd { size }, b'\n') => Self::Data(size),
            (Self::DataEnd { cr: false }, b'\r') => Self::DataEnd { cr: true },
            (Self::DataEnd { cr: true }, b'\n') => Self::default(),
            _ => return None,
        })
    }
}
