use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;
use crate::queue::{Score, VisitorId};

const NOW: u64 = 1_800_000_000;

fn room() -> RoomName {
    "main".parse().unwrap()
}

fn claims(typ: TokenType) -> Claims {
    let session = typ == TokenType::Session;
    Claims {
        typ,
        room: room(),
        sub: VisitorId::from_bits(7),
        score: Score(1_800_000_000_123_456),
        iat: NOW - 60,
        exp: NOW + 60,
        epoch: 3,
        draw: false,
        arrival: None,
        since_ms: None,
        ahead: None,
        called_ms: session.then_some(NOW * 1_000 - 2_000),
        admitted_ms: session.then_some(NOW * 1_000 - 1_000),
    }
}

fn keyring() -> Keyring {
    Keyring::new(SigningKey::random(), Vec::new())
}

/// A token of this exact header and payload, properly signed with the keyring's current key.
fn signed_by_hand(secret: &[u8], header: &str, payload: &str) -> String {
    let input = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret), input.as_bytes());
    format!("{input}.{}", URL_SAFE_NO_PAD.encode(tag))
}

#[test]
fn a_minted_token_gives_its_claims_back() {
    let keys = keyring();
    for typ in [TokenType::Queue, TokenType::Session] {
        let token = keys.mint(&claims(typ));
        assert_eq!(keys.verify(&token, typ, &room(), NOW), Ok(claims(typ)));
        assert!(token.len() < 512, "{} bytes leave no room in a 1 kB cookie", token.len());
    }
}

#[test]
fn header_and_claims_have_the_agreed_json() {
    let keys = keyring();
    let token = keys.mint(&claims(TokenType::Queue));
    let parts = jws::split(&token).unwrap();
    let text = |part| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    assert_eq!(text(parts.header), format!(r#"{{"alg":"HS256","kid":"{}","typ":"JWT"}}"#, keys.ids()[0]));
    assert_eq!(
        text(parts.payload),
        r#"{"typ":"queue","room":"main","sub":"AAAAAAAAAAAAAAAAAAAABw","score":1800000000123456,"iat":1799999940,"exp":1800000060,"epoch":3}"#
    );
}

#[test]
fn it_is_good_until_the_second_before_exp() {
    let keys = keyring();
    let token = keys.mint(&claims(TokenType::Queue));
    let exp = NOW + 60;
    assert!(keys.verify(&token, TokenType::Queue, &room(), exp - 1).is_ok());
    for now in [exp, exp + 1] {
        assert_eq!(keys.verify(&token, TokenType::Queue, &room(), now), Err(TokenError::Expired { at: exp }));
    }
}

#[test]
fn another_type_or_room_is_refused() {
    let keys = keyring();
    let token = keys.mint(&claims(TokenType::Queue));
    assert_eq!(keys.verify(&token, TokenType::Session, &room(), NOW), Err(TokenError::WrongType));
    let other = "other".parse().unwrap();
    assert_eq!(keys.verify(&token, TokenType::Queue, &other, NOW), Err(TokenError::WrongRoom));
}

#[test]
fn a_rotation_keeps_old_tokens_good_and_mints_with_the_new_key() {
    let keys = keyring();
    let shared = keys.clone();
    let old = keys.mint(&claims(TokenType::Queue));
    let next = SigningKey::random();

    shared.rotate(&next);

    assert_eq!(keys.ids()[0], next.id());
    assert_eq!(keys.ids().len(), 2);
    let new = keys.mint(&claims(TokenType::Queue));
    for token in [&old, &new] {
        assert!(keys.verify(token, TokenType::Queue, &room(), NOW).is_ok());
    }
    let without_old = Keyring::new(next, Vec::new());
    assert_eq!(without_old.verify(&old, TokenType::Queue, &room(), NOW), Err(TokenError::UnknownKey));
    assert!(without_old.verify(&new, TokenType::Queue, &room(), NOW).is_ok());
}

#[test]
fn rotating_to_a_live_key_keeps_one_of_it() {
    let keys = keyring();
    let key = SigningKey::random();
    keys.rotate(&key);
    keys.rotate(&SigningKey::random());
    keys.rotate(&key);
    assert_eq!((keys.ids()[0].as_str(), keys.ids().len()), (key.id(), 3));
}

#[test]
fn the_algorithm_is_ours_and_never_the_tokens() {
    let secret = [9; 32];
    let key = SigningKey::from_secret(&secret).unwrap();
    let kid = key.id().to_owned();
    let keys = Keyring::new(key, Vec::new());
    let payload = String::from_utf8(claims(TokenType::Queue).to_json()).unwrap();
    let header = |alg: &str| format!(r#"{{"alg":"{alg}","kid":"{kid}","typ":"JWT"}}"#);
    let verify = |token: &str| keys.verify(token, TokenType::Queue, &room(), NOW);

    assert!(verify(&signed_by_hand(&secret, &header("HS256"), &payload)).is_ok());
    for alg in ["none", "None", "HS512", "EdDSA", "hs256"] {
        let token = signed_by_hand(&secret, &header(alg), &payload);
        assert_eq!(verify(&token), Err(TokenError::UnknownKey), "{alg}");
        let (unsigned, _) = token.rsplit_once('.').unwrap();
        assert_eq!(verify(&format!("{unsigned}.")), Err(TokenError::UnknownKey), "{alg} without signature");
    }
    let good = signed_by_hand(&secret, &header("HS256"), &payload);
    let (unsigned, _) = good.rsplit_once('.').unwrap();
    assert_eq!(verify(&format!("{unsigned}.")), Err(TokenError::BadSignature));
    assert_eq!(verify(unsigned), Err(TokenError::Malformed));
}

#[test]
fn claims_of_a_newer_version_are_tolerated_and_missing_ones_are_not() {
    let secret = [9; 32];
    let key = SigningKey::from_secret(&secret).unwrap();
    let header = format!(r#"{{"alg":"HS256","kid":"{}","typ":"JWT"}}"#, key.id());
    let keys = Keyring::new(key, Vec::new());
    let verify =
        |payload: &str| keys.verify(&signed_by_hand(&secret, &header, payload), TokenType::Queue, &room(), NOW);
    let payload = String::from_utf8(claims(TokenType::Queue).to_json()).unwrap();

    assert_eq!(verify(&payload.replacen('{', r#"{"class":"vip","#, 1)), Ok(claims(TokenType::Queue)));
    for broken in ["", "{}", "[]", "not json", &payload.replace("main", "Main"), &payload.replace("Bw\"", "\"")] {
        assert_eq!(verify(broken), Err(TokenError::Malformed), "{broken}");
    }
}

#[test]
fn an_oversized_token_is_not_looked_at() {
    let keys = keyring();
    let token = keys.mint(&claims(TokenType::Queue));
    let long = format!("{token}{}", "A".repeat(MAX_TOKEN_BYTES));
    assert_eq!(keys.verify(&long, TokenType::Queue, &room(), NOW), Err(TokenError::Malformed));
}

#[test]
fn changing_any_byte_spoils_a_token() {
    let keys = keyring();
    let token = keys.mint(&claims(TokenType::Session));
    for at in 0..token.len() {
        for replacement in [b'A', b'B', b'_', b'.', b' ', b'='] {
            let mut changed = token.clone().into_bytes();
            if changed[at] == replacement {
                continue;
            }
            changed[at] = replacement;
            let changed = String::from_utf8(changed).unwrap();
            assert!(keys.verify(&changed, TokenType::Session, &room(), NOW).is_err(), "byte {at}");
        }
    }
}

proptest! {
    #[test]
    fn any_other_text_is_refused(
        at in any::<prop::sample::Index>(), removed in 0_usize..40, inserted in "[A-Za-z0-9_.-]{0,40}"
    ) {
        let keys = keyring();
        let token = keys.mint(&claims(TokenType::Queue));
        let start = at.index(token.len());
        let end = (start + removed).min(token.len());
        let mut changed = token.clone();
        changed.replace_range(start..end, &inserted);
        prop_assume!(changed != token);
        prop_assert!(keys.verify(&changed, TokenType::Queue, &room(), NOW).is_err());
    }

    #[test]
    fn nothing_makes_it_panic(text in any::<String>(), dots in "[^.]{0,20}(\\.[^.]{0,20}){0,4}") {
        let keys = keyring();
        for token in [text, dots] {
            prop_assert!(keys.verify(&token, TokenType::Queue, &room(), NOW).is_err());
        }
    }

    #[test]
    fn every_claim_survives(
        bits in any::<u128>(), score in 0_u64..1 << 53, exp in NOW + 1..u64::MAX, iat in any::<u64>(),
        epoch in any::<u64>(), ahead in any::<Option<u64>>(), called_ms in any::<Option<u64>>(), admitted_ms in any::<Option<u64>>(),
        name in "[a-z][a-z0-9-]{0,31}"
    ) {
        let keys = keyring();
        let room: RoomName = name.parse().unwrap();
        let claims = Claims {
            typ: TokenType::Session, room: room.clone(), sub: VisitorId::from_bits(bits), score: Score(score),
            iat, exp, epoch, draw: called_ms.is_none(), arrival: admitted_ms.map(Score), since_ms: called_ms, ahead, called_ms, admitted_ms,
        };
        let token = keys.mint(&claims);
        prop_assert!(token.len() <= MAX_TOKEN_BYTES);
        prop_assert_eq!(keys.verify(&token, TokenType::Session, &room, NOW), Ok(claims));
    }
}
