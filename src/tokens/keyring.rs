//! The keys in use: one mints, all verify.

use std::{iter, sync::Arc};

use arc_swap::ArcSwap;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{
    Claims, MAX_TOKEN_BYTES, SigningKey, TokenError, TokenType,
    jws::{self, Parts},
};
use crate::queue::RoomName;

/// The live keys. Clones share them, so a rotation reaches every task at once.
#[derive(Debug, Clone)]
pub struct Keyring(Arc<ArcSwap<Keys>>);

#[derive(Debug)]
struct Keys {
    current: SigningKey,
    previous: Vec<SigningKey>,
}

impl Keyring {
    /// A keyring that mints with `current` and still believes tokens of `previous`.
    pub fn new(current: SigningKey, previous: Vec<SigningKey>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Keys { current, previous })))
    }

    /// Mints with `new` from now on. Tokens of the older keys stay good, so a rotation drops nobody.
    pub fn rotate(&self, new: &SigningKey) {
        self.0.rcu(|keys| Keys {
            current: new.clone(),
            previous: iter::once(&keys.current)
                .chain(&keys.previous)
                .filter(|key| key.id() != new.id())
                .cloned()
                .collect(),
        });
    }

    /// The ids of the live keys, the minting one first.
    pub fn ids(&self) -> Vec<String> {
        let keys = self.0.load();
        keys.all().map(|key| key.id().to_owned()).collect()
    }

    /// Secrets derived from the live keys for this purpose, the minting key's first: every node with these keys derives the
    /// same. Nothing of a key follows from one (HMAC is a pseudo-random function, RFC 2104).
    pub fn derive(&self, purpose: &str) -> Vec<[u8; 32]> {
        self.0.load().all().map(|key| key.derive(purpose)).collect()
    }

    /// Signs `claims` with the current key.
    pub fn mint(&self, claims: &Claims) -> String {
        self.0.load().current.sign(&claims.to_json())
    }

    /// The claims of `token`, if a live key signed it and it is of type `expect`, for `room`, and good at
    /// `now_seconds` (Unix). Nothing of the payload is read before the signature is found right.
    ///
    /// The claims' epoch is the caller's to compare.
    pub fn verify(
        &self,
        token: &str,
        expect: TokenType,
        room: &RoomName,
        now_seconds: u64,
    ) -> Result<Claims, TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::Malformed);
        }
        let parts = jws::split(token).ok_or(TokenError::Malformed)?;
        self.0.load().authenticate(&parts)?;
        let mut json = [0_u8; MAX_TOKEN_BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(parts.payload, &mut json).map_err(|_| TokenError::Malformed)?;
        let claims = Claims::from_json(json.get(..length).unwrap_or_default())?;
        claims.check(expect, room, now_seconds)?;
        Ok(claims)
    }
}

impl Keys {
    fn all(&self) -> impl Iterator<Item = &SigningKey> {
        iter::once(&self.current).chain(&self.previous)
    }

    fn authenticate(&self, parts: &Parts<'_>) -> Result<(), TokenError> {
        let mut known = false;
        // Ids are short, so two keys may share one: every key of that name gets its try.
        for key in self.all().filter(|key| key.mints(parts.header)) {
            known = true;
            if key.verifies(parts.signing_input, parts.signature) {
                return Ok(());
            }
        }
        Err(if known { TokenError::BadSignature } else { TokenError::UnknownKey })
    }
}

#[cfg(test)]
mod tests;
