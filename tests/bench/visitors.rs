//! Visitors who wait, and the tokens that say so.

use stanchion::{
    queue::{Score, VisitorId},
    tokens::{Claims, Keyring, SigningKey, TokenType},
};

const SECRET: [u8; 32] = [0x5a; 32];
/// 1 January 2026: every arrival is in the past.
const FIRST_ARRIVAL: u64 = 1_767_225_600_000_000;
const DAY: u64 = 86_400;

/// The signing key as the gateway takes it.
pub fn key_hex() -> String {
    SECRET.map(|byte| format!("{byte:02x}")).concat()
}

/// Visitor number `index`.
pub fn id(index: u32) -> VisitorId {
    // Spread over the bits, as random ones are.
    VisitorId::from_bits(u128::from(index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// When visitor number `index` came.
pub fn score(index: u32) -> Score {
    Score(FIRST_ARRIVAL + u64::from(index) * 100)
}

/// The cookie of a visitor who was let in an hour ago, and stays for another.
pub fn session(index: u32) -> anyhow::Result<String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let (admitted, until) = (now - DAY / 24, now + DAY / 24);
    let claims = Claims {
        typ: TokenType::Session,
        room: "main".parse()?,
        sub: id(index),
        score: score(index),
        iat: admitted,
        exp: until,
        epoch: 1,
        draw: false,
        arrival: None,
        ahead: None,
        since_ms: None,
        called_ms: Some(admitted * 1_000),
        admitted_ms: Some(admitted * 1_000),
    };
    let keyring = Keyring::new(SigningKey::from_secret(&SECRET)?, Vec::new());
    Ok(format!("stanchion_s_main={}", keyring.mint(&claims)))
}

/// The cookie of visitor number `index`, good for the room `main`.
pub fn cookie(index: u32) -> anyhow::Result<String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let claims = Claims {
        typ: TokenType::Queue,
        room: "main".parse()?,
        sub: id(index),
        score: score(index),
        iat: now,
        exp: now + DAY,
        epoch: 1,
        draw: false,
        arrival: None,
        since_ms: None,
        ahead: None,
        called_ms: None,
        admitted_ms: None,
    };
    let keyring = Keyring::new(SigningKey::from_secret(&SECRET)?, Vec::new());
    Ok(format!("stanchion_q_main={}", keyring.mint(&claims)))
}

/// The cookies of `count` visitors, evenly over a line of `waiting`. The first of the line is not among them: they are called.
pub fn cookies(count: u32, waiting: u32) -> anyhow::Result<Vec<String>> {
    let step = (waiting - 1) / count;
    (0..count).map(|index| cookie(1 + index * step)).collect()
}
