//! Signs webhooks: `t=<unix s>,v1=<hex HMAC-SHA256(secret, "<t>." + body)>`.

use std::fmt::{self, Write as _};

use ring::hmac;

/// The header that carries the signature.
pub(super) const HEADER: &str = "stanchion-pay-signature";

/// Holds the webhook secret.
pub(super) struct Signer(hmac::Key);

impl Signer {
    pub(super) fn new(secret: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// The header's value for exactly these bytes, signed at this second.
    pub(super) fn sign(&self, unix_seconds: u64, body: &[u8]) -> String {
        let mut signed = hmac::Context::with_key(&self.0);
        signed.update(unix_seconds.to_string().as_bytes());
        signed.update(b".");
        signed.update(body);
        let mut value = format!("t={unix_seconds},v1=");
        for byte in signed.sign().as_ref() {
            // Writing to a string does not fail.
            let _ = write!(value, "{byte:02x}");
        }
        value
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest is from `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac whsec_test`.
    #[test]
    fn agrees_with_openssl() {
        assert_eq!(
            Signer::new("whsec_test").sign(1_700_000_000, br#"{"a":1}"#),
            "t=1700000000,v1=38877139021993b830af32feea6e18a8da83eb2f6e49ee50bd9e4cf4ca4d3789"
        );
    }
}
