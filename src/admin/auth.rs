//! The admin token.

use std::fmt;

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use subtle::ConstantTimeEq as _;

use crate::gateway::problem::Problem;

/// What changes are authorised with. Never shown by `Debug`.
#[derive(Clone)]
pub struct AdminToken(String);

impl AdminToken {
    /// A token; an empty one authorises nobody.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// Whether `headers` carry it as a bearer token (RFC 6750 §2.1).
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked(7));
        let Some((scheme, token)) = given else {
            let cure = "Send `Authorization: Bearer <the admin token>`.";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "changes need the admin token", cure));
        };
        let is_ours = scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(token.ct_eq(self.0.as_bytes()));
        if is_ours && !self.0.is_empty() {
            return Ok(());
        }
        let cure = "Use the token of STANCHION_ADMIN_TOKEN.";
        Err(Problem::new(StatusCode::FORBIDDEN, "that is not the admin token", cure))
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}
