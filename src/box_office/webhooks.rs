//! The provider's webhooks: is it really the provider, is it fresh, what does it say. Pure.

use ring::hmac;
use serde::Deserialize;

use super::{
    ids::OrderId,
    ledger::{Notice, Outcome},
};
use crate::config::Secret;

/// How far the signature's time may be from ours, either way.
const WINDOW_SECONDS: u64 = 300;
/// A few, so that secrets can be rotated; not as many as a stranger likes to have computed.
const MOST_SIGNATURES: usize = 8;

/// Why a webhook is not believed. Deliberately few words: the caller may be anyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// No `Stanchion-Pay-Signature`, or not `t=…,v1=…`.
    #[error("the signature is missing or malformed")]
    Malformed,
    /// Its time is not within five minutes of ours.
    #[error("the signature is too old or from the future")]
    Stale,
    /// Nobody who has a secret of ours signed these bytes.
    #[error("the signature does not fit the body")]
    Wrong,
}

/// Checks `header` (`t=<unix s>,v1=<hex>[,v1=<hex>…]`) over the exact bytes of `body`. One fitting `v1` suffices.
pub fn verify(header: &str, body: &[u8], secrets: &[Secret], now_seconds: u64) -> Result<(), SignatureError> {
    let (time, signatures) = parse(header).ok_or(SignatureError::Malformed)?;
    let seconds: u64 = time.parse().map_err(|_| SignatureError::Malformed)?;
    if seconds.abs_diff(now_seconds) > WINDOW_SECONDS {
        return Err(SignatureError::Stale);
    }
    let signed = [time.as_bytes(), b".", body].concat();
    let fits = secrets.iter().any(|secret| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        signatures.iter().any(|signature| hmac::verify(&key, &signed, signature).is_ok())
    });
    if fits { Ok(()) } else { Err(SignatureError::Wrong) }
}

fn parse(header: &str) -> Option<(&str, Vec<Vec<u8>>)> {
    let (mut time, mut signatures) = (None, Vec::new());
    for field in header.split(',') {
        match field.trim().split_once('=')? {
            // Twice a time would leave open which one was signed.
            ("t", _) if time.is_some() => return None,
            ("t", digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => time = Some(digits),
            ("t", _) => return None,
            ("v1", hex) if signatures.len() < MOST_SIGNATURES => signatures.extend(unhex(hex)),
            _ => {}
        }
    }
    Some((time?, signatures))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[derive(Deserialize)]
struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    charge: String,
    order: String,
    amount_minor: u64,
    currency: String,
}

/// What a webhook asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// Something about a charge of ours.
    Notice(Notice),
    /// Of a type that does not concern us.
    Other,
    /// About an order whose name is none of ours.
    NotOurs,
}

/// Reads a verified body.
///
/// # Errors
/// When it is not the JSON the provider documents.
pub fn read(body: &[u8]) -> Result<Message, serde_json::Error> {
    let event: Event = serde_json::from_slice(body)?;
    let outcome = match event.kind.as_str() {
        "charge.captured" => Outcome::Captured,
        "charge.declined" => Outcome::Declined,
        "refund.succeeded" => Outcome::Refunded,
        _ => return Ok(Message::Other),
    };
    let Ok(order) = event.order.parse::<OrderId>() else { return Ok(Message::NotOurs) };
    Ok(Message::Notice(Notice {
        event: Some(event.id),
        charge: event.charge,
        order,
        outcome,
        amount_minor: event.amount_minor,
        currency: event.currency,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000;
    const BODY: &[u8] = br#"{"id":"evt_1"}"#;

    fn secrets() -> Vec<Secret> {
        vec![Secret::from("the new secret of ours"), Secret::from("the old secret of ours")]
    }

    fn sign(secret: &str, time: &str, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let tag = hmac::sign(&key, &[time.as_bytes(), b".", body].concat());
        tag.as_ref().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }

    fn check(header: &str) -> Result<(), SignatureError> {
        verify(header, BODY, &secrets(), NOW)
    }

    #[test]
    fn either_secret_and_either_signature_will_do() {
        let time = NOW.to_string();
        for secret in ["the new secret of ours", "the old secret of ours"] {
            let good = sign(secret, &time, BODY);
            let bad = "00".repeat(32);
            for header in [
                format!("t={time},v1={good}"),
                format!("t={time},v1={bad},v1={good}"),
                format!("t={time},v1={good},v1={bad}"),
                format!("t={time},v0=x,v1=zz,v1={good}"),
            ] {
                assert_eq!(check(&header), Ok(()), "{header}");
            }
        }
    }

    #[test]
    fn time_must_be_a_number_within_the_window() {
        for (offset, expected) in
            [(-300, Ok(())), (300, Ok(())), (-301, Err(SignatureError::Stale)), (301, Err(SignatureError::Stale))]
        {
            let time = NOW.checked_add_signed(offset).unwrap().to_string();
            let header = format!("t={time},v1={}", sign("the new secret of ours", &time, BODY));
            assert_eq!(check(&header), expected, "{offset}");
        }
        for time in ["NaN", "", "-5", "+1700000000", "1e9", "99999999999999999999999", "1700000000.5"] {
            let header = format!("t={time},v1={}", sign("the new secret of ours", time, BODY));
            assert_eq!(check(&header), Err(SignatureError::Malformed), "{time:?}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let good = sign("the new secret of ours", &NOW.to_string(), BODY);
        for (header, expected) in [
            (String::new(), SignatureError::Malformed),
            (format!("v1={good}"), SignatureError::Malformed),
            (format!("t={NOW},t={NOW},v1={good}"), SignatureError::Malformed),
            (format!("t={NOW}"), SignatureError::Wrong),
            (format!("t={NOW},v1={}", &good[..62]), SignatureError::Wrong),
            (format!("t={},v1={good}", NOW + 1), SignatureError::Wrong),
            (format!("t={NOW},v1={}", sign("some other secret here", &NOW.to_string(), BODY)), SignatureError::Wrong),
        ] {
            assert_eq!(check(&header), Err(expected), "{header}");
        }
        let spaced = br#"{"id": "evt_1"}"#;
        assert_eq!(verify(&format!("t={NOW},v1={good}"), spaced, &secrets(), NOW), Err(SignatureError::Wrong));
    }
}
