//! JSON Web Signature, compact serialisation (RFC 7515 §7.1), HMAC with SHA-256 only.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;

/// A secret shorter than the hash is not allowed for HS256 (RFC 7518 §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a signing secret needs at least {} bytes", SigningKey::MIN_SECRET_BYTES)]
pub struct WeakSecret;

/// A key that signs and verifies. Holds the keyed hash state, not the secret.
#[derive(Clone)]
pub struct SigningKey {
    id: String,
    key: hmac::Key,
    /// The encoded header of every token this key mints. A token is this key's only if it begins with exactly these
    /// bytes, so the algorithm belongs to the key and is never read from the token (RFC 8725 §3.1).
    header: String,
}

impl SigningKey {
    /// Least length of a secret.
    pub const MIN_SECRET_BYTES: usize = 32;

    /// The key of a secret of at least [`Self::MIN_SECRET_BYTES`] random bytes.
    pub fn from_secret(secret: &[u8]) -> Result<Self, WeakSecret> {
        if secret.len() < Self::MIN_SECRET_BYTES { Err(WeakSecret) } else { Ok(Self::keyed(secret)) }
    }

    /// A key that dies with the process.
    pub fn random() -> Self {
        Self::keyed(&rand::random::<[u8; Self::MIN_SECRET_BYTES]>())
    }

    /// The `kid` of its tokens: 8 hex digits derived from the secret, so every node names the same key alike.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A secret for another purpose. The prefix keeps it apart from signatures, which begin with base64.
    pub(super) fn derive(&self, purpose: &str) -> [u8; 32] {
        let tag = hmac::sign(&self.key, format!("stanchion derived: {purpose}").as_bytes());
        let mut secret = [0; 32];
        secret.copy_from_slice(tag.as_ref());
        secret
    }

    fn keyed(secret: &[u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let fingerprint = hmac::sign(&key, b"stanchion key id");
        let id = fingerprint.as_ref().iter().take(4).fold(0_u32, |id, byte| id << 8 | u32::from(*byte));
        let id = format!("{id:08x}");
        let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}","typ":"JWT"}}"#));
        Self { id, key, header }
    }

    /// Whether a token with this encoded header is ours to verify.
    pub(super) fn mints(&self, header: &str) -> bool {
        self.header == header
    }

    /// `header.payload.signature`.
    pub(super) fn sign(&self, payload: &[u8]) -> String {
        let mut token = String::with_capacity(self.header.len() + payload.len() * 4 / 3 + 50);
        token.push_str(&self.header);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(payload, &mut token);
        let tag = hmac::sign(&self.key, token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(tag.as_ref(), &mut token);
        token
    }

    /// Whether `signature` (encoded) is this key's over `signing_input`, compared in constant time.
    pub(super) fn verifies(&self, signing_input: &str, signature: &str) -> bool {
        let mut tag = [0_u8; 32];
        // The decoder refuses non-zero trailing bits, so a signature has exactly one spelling.
        matches!(URL_SAFE_NO_PAD.decode_slice(signature, &mut tag), Ok(32))
            && hmac::verify(&self.key, signing_input.as_bytes(), &tag).is_ok()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The parts of a compact serialisation, still encoded.
pub(super) struct Parts<'a> {
    pub(super) header: &'a str,
    pub(super) payload: &'a str,
    pub(super) signature: &'a str,
    /// Header and payload with the dot between them: what is signed.
    pub(super) signing_input: &'a str,
}

/// Splits a token. `None` unless it has exactly three parts.
pub(super) fn split(token: &str) -> Option<Parts<'_>> {
    let (signing_input, signature) = token.rsplit_once('.')?;
    let (header, payload) = signing_input.split_once('.')?;
    (!payload.contains('.')).then_some(Parts { header, payload, signature, signing_input })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7515 appendix A.1, whose header differs from ours.
    #[test]
    fn agrees_with_the_rfc() {
        let secret = URL_SAFE_NO_PAD
            .decode("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
            .unwrap();
        let mut key = SigningKey::from_secret(&secret).unwrap();
        key.header = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9".to_owned();
        let payload = b"{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";

        let token = key.sign(payload);

        assert_eq!(
            token,
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
             eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
             dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        );
        let parts = split(&token).unwrap();
        assert!(key.mints(parts.header) && key.verifies(parts.signing_input, parts.signature));
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert_eq!(SigningKey::from_secret(&[7; 31]).unwrap_err(), WeakSecret);
        assert!(SigningKey::from_secret(&[7; 32]).is_ok());
    }

    #[test]
    fn debug_shows_the_id_only() {
        let key = SigningKey::random();
        assert_eq!(format!("{key:?}"), format!("SigningKey {{ id: {:?}, .. }}", key.id()));
    }
}
