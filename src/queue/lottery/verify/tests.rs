use super::*;
use crate::queue::{
    Method, Mode,
    lottery::{RosterDigest, roster_line},
};

/// A draw of this many, and its roster.
fn drawn(count: u64) -> (Published, String) {
    let (mut digest, mut roster) = (RosterDigest::new(), String::new());
    for number in 0..count {
        let (visitor, arrival) =
            (VisitorId::from_bits(u128::from(number) << 64), Score(1_800_000_000_000_000 + number));
        digest.add(visitor, arrival);
        roster += &roster_line(visitor, arrival);
    }
    let (seed, digest) = (Seed::new([5; 32]), digest.finish());
    let published = Published {
        room: "main".to_owned(),
        epoch: 1,
        method: Method::Lottery,
        state: Mode::Open,
        prequeue_at: None,
        opens_at: None,
        closes_at: None,
        commitment: Some(seed.commitment("nonce", None)),
        beacon: None,
        roster: count,
        roster_digest: Some(digest.clone()),
        public_value: Some(digest),
        seed: Some(seed.to_hex()),
        receipt_keys: Vec::new(),
    };
    (published, roster)
}

fn flaw(draw: &Published, roster: &str, beacon: Option<&str>) -> String {
    verify(draw, roster.as_bytes(), beacon).unwrap_err().to_string()
}

#[test]
fn an_honest_draw_is_in_the_order_of_the_draws() {
    let (draw, roster) = drawn(500);
    let order = verify(&draw, roster.as_bytes(), None).unwrap();
    let draws = Seed::new([5; 32]).with(draw.public_value.as_deref().unwrap());
    assert!(order.len() == 500 && !order.is_empty());
    assert!(order.iter().is_sorted_by_key(|(_, draw)| draw));
    assert!(order.iter().all(|(visitor, draw)| draws.of(visitor) == draw));
    let (first, _) = order.iter().next().unwrap();
    assert_eq!(order.place_of(first).unwrap().0, 1);
    assert_eq!(order.place_of(VisitorId::from_bits(7)), None);
    let (nobody, empty) = drawn(0);
    assert!(verify(&nobody, empty.as_bytes(), None).unwrap().is_empty());
}

#[test]
fn every_lie_is_found() {
    let (draw, roster) = drawn(20);
    let other_seed = Published { seed: Some(Seed::new([6; 32]).to_hex()), ..draw.clone() };
    assert!(flaw(&other_seed, &roster, None).contains("not the one that was committed to"));
    let no_seed = Published { seed: None, ..draw.clone() };
    assert!(flaw(&no_seed, &roster, None).contains("not done yet: draw.json says no seed"));
    let half_seed = Published { seed: Some("ab".to_owned()), ..draw.clone() };
    assert!(flaw(&half_seed, &roster, None).contains("64 hex digits"));
    let chosen = Published { public_value: Some("chosen".to_owned()), ..draw.clone() };
    assert!(flaw(&chosen, &roster, None).contains("no beacon was named"));
    let missing = roster.split_inclusive('\n').skip(1).collect::<String>();
    assert!(flaw(&draw, &missing, None).contains("not the one that was fixed before the draw"));
    let swapped = roster.split_inclusive('\n').rev().collect::<String>();
    assert!(flaw(&draw, &swapped, None).contains("line 2 of the roster is not in order"));
    assert!(flaw(&draw, &format!("{roster}nobody\n"), None).contains("line 21 of the roster is not"));
    assert!(flaw(&draw, roster.trim_end(), None).contains("line 20"), "cut off");
    assert!(flaw(&draw, &format!("{}\n", "x".repeat(1_000)), None).contains("line 1"));
}

#[test]
fn a_visitor_with_two_chances_is_found() {
    let (mut draw, mut roster) = drawn(5);
    let (mut digest, last) = (RosterDigest::new(), roster_line(VisitorId::from_bits(0), Score(1_900_000_000_000_000)));
    roster += &last;
    for line in roster.lines() {
        let (visitor, arrival) = parse(format!("{line}\n").as_bytes()).unwrap();
        digest.add(visitor, arrival);
    }
    draw.roster_digest = Some(digest.finish());
    draw.public_value.clone_from(&draw.roster_digest);
    assert!(flaw(&draw, &roster, None).contains("twice"));
}

#[test]
fn a_beacons_value_is_compared() {
    let (draw, roster) = drawn(5);
    assert!(flaw(&draw, &roster, Some("said")).contains("no beacon was named"));
    let beacon = Published {
        beacon: Some("drand round 5".to_owned()),
        commitment: Some(Seed::new([5; 32]).commitment("nonce", Some("drand round 5"))),
        public_value: Some("said".to_owned()),
        ..draw
    };
    assert!(verify(&beacon, roster.as_bytes(), Some("said")).is_ok());
    assert!(verify(&beacon, roster.as_bytes(), None).is_ok());
    assert!(flaw(&beacon, &roster, Some("other")).contains("but the beacon said \"other\""));
}

#[test]
fn a_beacon_that_was_not_committed_to_is_found() {
    let (draw, roster) = drawn(5);
    let named = |beacon: Option<&str>, committed: Option<&str>| Published {
        beacon: beacon.map(str::to_owned),
        commitment: Some(Seed::new([5; 32]).commitment("nonce", committed)),
        ..draw.clone()
    };
    let late = flaw(&named(Some("drand round 5"), None), &roster, None);
    assert_eq!(late, "the beacon is \"drand round 5\", but none (the roster's digest decides) was committed to");
    assert!(flaw(&named(None, Some("drand round 5")), &roster, None).contains("the beacon is none"));
    assert!(flaw(&named(Some("drand round 6"), Some("drand round 5")), &roster, Some("said")).contains("round 6"));
}
