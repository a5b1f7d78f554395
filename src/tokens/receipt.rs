//! What somebody keeps who came in the pre-queue: signed proof of when they came, which anybody can check offline.
//!
//! Queue tokens are for the gateways that share a secret; a receipt is for everybody, so it is signed with Ed25519
//! (RFC 8032), by a key that is derived from the signing keys, and its public half is published with the draw.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use super::Keyring;
use crate::queue::{Score, VisitorId};

/// What the signing keys' secrets are derived for.
const PURPOSE: &str = "receipts";

/// A visitor's proof of having come in the pre-queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The room's name.
    pub room: String,
    /// Its epoch.
    pub epoch: u64,
    /// Who: as the roster names them. Knowing it gives no right.
    pub visitor: String,
    /// When they came, microseconds by the store's clock, as in the roster.
    pub arrival: u64,
    /// The commitment to the seed and to the beacon, if any, as it was published when they came.
    pub commitment: String,
    /// Ed25519 over the text of all that, URL-safe base64.
    #[serde(default)]
    pub signature: String,
    /// The public key, URL-safe base64.
    #[serde(default)]
    pub key: String,
}

/// Why a receipt proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadReceipt {
    /// Its key is none of those that are published with the draw.
    #[error("the receipt is signed with a key that is not one of the published receipt_keys")]
    UnknownKey,
    /// It was changed, or signed by somebody else.
    #[error("the receipt's signature does not match what it says")]
    BadSignature,
}

impl Receipt {
    /// What is signed.
    fn text(&self) -> String {
        let Self { room, epoch, visitor, arrival, commitment, .. } = self;
        format!(
            "stanchion receipt\nroom {room}\nepoch {epoch}\nvisitor {visitor}\narrival {arrival}\ncommitment {commitment}\n"
        )
    }

    /// Whether one of these public keys signed it.
    pub fn check(&self, keys: &[String]) -> Result<(), BadReceipt> {
        if !keys.contains(&self.key) {
            return Err(BadReceipt::UnknownKey);
        }
        let key = URL_SAFE_NO_PAD.decode(&self.key).map_err(|_| BadReceipt::UnknownKey)?;
        let signature = URL_SAFE_NO_PAD.decode(&self.signature).map_err(|_| BadReceipt::BadSignature)?;
        UnparsedPublicKey::new(&ED25519, key)
            .verify(self.text().as_bytes(), &signature)
            .map_err(|_| BadReceipt::BadSignature)
    }
}

impl Keyring {
    /// A receipt signed with the newest key.
    pub fn receipt(&self, room: &str, epoch: u64, visitor: VisitorId, arrival: Score, commitment: &str) -> Receipt {
        let mut receipt = Receipt {
            room: room.to_owned(),
            epoch,
            visitor: visitor.to_string(),
            arrival: arrival.0,
            commitment: commitment.to_owned(),
            signature: String::new(),
            key: String::new(),
        };
        if let Some(pair) = self.receipt_pairs().first() {
            receipt.signature = URL_SAFE_NO_PAD.encode(pair.sign(receipt.text().as_bytes()));
            receipt.key = public_half(pair);
        }
        receipt
    }

    /// The public keys of receipts, the newest first.
    pub fn receipt_keys(&self) -> Vec<String> {
        self.receipt_pairs().iter().map(public_half).collect()
    }

    fn receipt_pairs(&self) -> Vec<Ed25519KeyPair> {
        // Every 32 bytes are a seed of Ed25519.
        self.derive(PURPOSE).iter().filter_map(|seed| Ed25519KeyPair::from_seed_unchecked(seed).ok()).collect()
    }
}

fn public_half(pair: &Ed25519KeyPair) -> String {
    URL_SAFE_NO_PAD.encode(pair.public_key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::SigningKey;

    fn receipt(keyring: &Keyring) -> Receipt {
        keyring.receipt("main", 3, VisitorId::from_bits(7), Score(12), "c0ffee")
    }

    #[test]
    fn a_receipt_is_checked_with_the_published_keys_also_after_a_rotation() {
        let keyring = Keyring::new(SigningKey::random(), Vec::new());
        let mine = receipt(&keyring);
        assert_eq!(mine.check(&keyring.receipt_keys()), Ok(()));
        keyring.rotate(&SigningKey::random());
        assert_eq!(keyring.receipt_keys().len(), 2);
        assert_eq!(mine.check(&keyring.receipt_keys()), Ok(()));
        let copied: Receipt = serde_json::from_str(&serde_json::to_string(&mine).unwrap()).unwrap();
        assert_eq!(copied, mine);
    }

    #[test]
    fn what_it_says_cannot_be_changed() {
        let keyring = Keyring::new(SigningKey::random(), Vec::new());
        let (mine, keys) = (receipt(&keyring), keyring.receipt_keys());
        let changed = [
            Receipt { room: "other".to_owned(), ..mine.clone() },
            Receipt { epoch: 4, ..mine.clone() },
            Receipt { visitor: VisitorId::from_bits(8).to_string(), ..mine.clone() },
            Receipt { arrival: 11, ..mine.clone() },
            Receipt { commitment: "c0ffef".to_owned(), ..mine.clone() },
            Receipt { signature: String::new(), ..mine.clone() },
        ];
        for receipt in changed {
            assert_eq!(receipt.check(&keys), Err(BadReceipt::BadSignature), "{receipt:?}");
        }
        let stranger = receipt(&Keyring::new(SigningKey::random(), Vec::new()));
        assert_eq!(stranger.check(&keys), Err(BadReceipt::UnknownKey));
    }

    #[test]
    fn the_signature_is_that_of_rfc_8032() {
        // §7.1, test 2.
        let decode = |hex: &str| -> Vec<u8> {
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
        };
        let seed = decode("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let public = decode("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        assert_eq!(pair.public_key().as_ref(), public);
    }
}
