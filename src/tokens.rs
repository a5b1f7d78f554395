//! Queue and session tokens: JWT (RFC 7519) signed with HS256 (RFC 7518 §3.2), several keys live at once.
//!
//! A queue token is the durable proof of a visitor's place, a session token the right to reach the origin; both are
//! verified here without asking any store. [`jws`] knows signatures and nothing of claims, [`claims`] the reverse.

pub mod claims;
pub mod jws;
pub mod keyring;
pub mod receipt;

pub use claims::{Claims, TokenType};
pub use jws::{SigningKey, WeakSecret};
pub use keyring::Keyring;
pub use receipt::{BadReceipt, Receipt};

/// Longest token that is looked at, in bytes. Ours are about 350; a cookie stays under 1 kB.
pub const MAX_TOKEN_BYTES: usize = 1024;

/// Why a token is not believed. Never holds any of the token's text, so it can be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not three dot-separated parts, too long, or a signed payload that holds no claims of ours.
    #[error("not a token of this gateway")]
    Malformed,
    /// The header is none that our live keys mint: forged, signed with another algorithm or `none`, or its key was
    /// retired.
    #[error("the token names no live key")]
    UnknownKey,
    /// The text was changed, or signed by someone else.
    #[error("the token's signature does not match")]
    BadSignature,
    /// A queue token where a session token is wanted, or the reverse.
    #[error("a token of the wrong type")]
    WrongType,
    /// The token is for another room.
    #[error("a token for another room")]
    WrongRoom,
    /// Genuine, but no longer good.
    #[error("the token expired at {at} (Unix seconds)")]
    Expired {
        /// Its `exp` claim, Unix seconds.
        at: u64,
    },
}
