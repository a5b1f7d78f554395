//! Sessions: what they survive, and what ends them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::StatusCode;
use stanchion::{
    admission::Standing,
    clock::Clock as _,
    queue::{Past, Place, Policy},
    tokens::{Keyring, SigningKey, TokenType},
};
use tokio::time::sleep;

use super::{Town, poll_until_in, queued, session};
use crate::support::{
    house::{House, eventually, in_process},
    node::{TokioClock, node},
    origin::Origin,
    wire::Wire,
};

const SECOND: Duration = Duration::from_secs(1);

/// No leeway: a token is dead when its slot is, on a node whose clock is five seconds off too.
#[tokio::test(start_paused = true)]
async fn b14_a_session_is_good_for_as_long_as_its_slot_and_not_a_second_longer_on_any_node() {
    let change = |config: &mut stanchion::config::RoomConfig| {
        config.policy.session_ttl = 5 * SECOND;
        config.session_cap = 5 * SECOND;
    };
    let mut town = Town::of(1, change).await;
    let skewed = TokioClock { skew: 5 * SECOND, ..town.clock };
    let other = node(Arc::clone(&town.engine), skewed, &town.keyring, |config| {
        *config = super::defaults();
        change(config);
    })
    .await;
    other.start(&town.shutdown);
    town.nodes.push(other);
    let claims = town.admit(1).await.remove(0);
    let token = town.keyring.mint(&claims);
    let mut refused_after = Vec::new();
    for step in 0..450 {
        let now_ms = town.clock.unix_millis();
        for room in &town.nodes {
            let verified = town.keyring.verify(&token, TokenType::Session, room.name(), room.now_ms() / 1_000);
            if verified.is_ok() {
                assert!(refused_after.is_empty(), "good again after {refused_after:?}");
                assert!(now_ms < claims.exp * 1_000, "still good at {now_ms}");
                let kept = town.place(&claims).await;
                assert!(matches!(kept, Place::Inside { .. }), "a token outlives its slot: {kept:?}");
            } else if now_ms + 1_000 < claims.exp * 1_000 {
                panic!("refused before its time, at {now_ms}");
            } else {
                refused_after.push(step);
            }
        }
        sleep(SECOND / 10).await;
    }
    assert!(refused_after.len() > 700, "replayed 40 s later and all the time: {}", refused_after.len());
    assert_eq!(town.now().await.inside, 0);
}

/// A restart, and a key that was rotated meanwhile.
#[tokio::test(start_paused = true)]
async fn b16_tokens_outlive_a_restart_and_a_rotation() {
    let mut town = Town::of(1, |config| config.policy.capacity = 1).await;
    let first = SigningKey::from_secret(&[7; 32]).unwrap();
    town.keyring = Keyring::new(first.clone(), Vec::new());
    town.nodes.clear();
    town.open_node(|config| config.policy.capacity = 1).await;
    let inside = town.admit(1).await.remove(0);
    let waits = town.queue_up(1).await.remove(0);
    let tokens = [&inside, &waits].map(|claims| (claims.typ, town.keyring.mint(claims)));

    town.nodes.clear();
    town.keyring = Keyring::new(SigningKey::random(), vec![first]);
    town.open_node(|config| config.policy.capacity = 1).await;
    let room = town.node();
    for (typ, token) in tokens {
        let claims = town.keyring.verify(&token, typ, room.name(), room.now_ms() / 1_000).unwrap();
        assert_eq!(claims, if typ == TokenType::Session { inside.clone() } else { waits.clone() });
    }
    assert!(room.touch(inside.clone()).await.is_some());
    sleep(SECOND).await;
    assert!(room.is_live(&inside));
    assert_eq!(queued(&room.look_up(Some(waits.clone())).await), waits, "nobody queues again");
    room.release(&inside);
    let (admitted, _) = poll_until_in(Arc::clone(room), waits.clone(), SECOND).await;
    assert_eq!((admitted.sub, admitted.score), (waits.sub, waits.score));
}

/// The order is sent in the last moments of the session and takes longer than those.
#[tokio::test]
async fn b17_a_request_that_began_in_time_is_completed_once() {
    let origin = Origin::bind().await;
    let keyring = Keyring::new(SigningKey::random(), Vec::new());
    let house = House::on(in_process(), keyring, |config| {
        config.origins = stanchion::config::Origins::at(origin.uri());
        config.policy.session_ttl = 2 * SECOND;
        config.session_cap = 2 * SECOND;
    })
    .await;
    let claims = session(house.room.come(None, true).await);
    let cookie = format!("stanchion_s_main={}", house.keyring.mint(&claims));
    let mut client = Wire::connect(house.url.strip_prefix("http://").unwrap().parse().unwrap()).await;
    let head = format!("Host: a\r\nAccept: application/json\r\nCookie: {cookie}\r\n");
    client.send(format!("POST /pay HTTP/1.1\r\n{head}Content-Length: 3\r\n\r\nbuy")).await;
    let mut shop = origin.accept().await;
    assert_eq!(shop.head().await.start, "POST /pay HTTP/1.1");
    assert_eq!(shop.bytes(3).await, b"buy");
    eventually("the session's end", async || {
        (house.figure("admitted_total").await == 1 && house.figure("inside").await == 0).then_some(())
    })
    .await;
    shop.send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(client.head().await.status(), 201);
    assert_eq!(client.bytes(2).await, b"ok");
    // The next one would be the first after the session, and is not sent on.
    client.send(format!("POST /pay HTTP/1.1\r\n{head}Content-Length: 3\r\n\r\nbuy")).await;
    assert_eq!(client.head().await.status(), StatusCode::SERVICE_UNAVAILABLE.as_u16());
    let next = tokio::time::timeout(Duration::from_millis(200), origin.accept()).await;
    assert!(next.is_err(), "charged twice");
}

/// Called or just admitted, then the capacity falls to one.
#[tokio::test(start_paused = true)]
async fn b18_a_call_and_an_admission_are_reservations() {
    let town = Town::of(1, |config| config.policy.capacity = 4).await;
    let inside = town.admit(4).await;
    let waits = town.queue_up(2).await;
    for buyer in &inside[..2] {
        town.node().release(buyer);
    }
    sleep(SECOND).await;
    assert_eq!(town.now().await.called, 2);
    let policy = Policy { capacity: 1, ..town.node().config().policy.clone() };
    town.queue.configure(&policy, Past::Blank).await.unwrap();
    sleep(SECOND).await;
    assert!(town.node().touch(inside[3].clone()).await.is_some(), "the first request of an admitted visitor");
    for claims in waits {
        let admitted = session(town.node().look_up(Some(claims.clone())).await);
        assert_eq!(admitted.sub, claims.sub);
        assert!(town.node().touch(admitted).await.is_some());
    }
    assert_eq!(town.now().await.inside, 4);
}

/// Eighty inside, the capacity goes from a hundred to ten and back.
#[tokio::test(start_paused = true)]
async fn b19_a_lower_capacity_ejects_and_admits_nobody_and_a_higher_one_ramps() {
    let town = Arc::new(
        Town::of(2, |config| {
            config.policy.capacity = 80;
            config.policy.rate = 8.0;
            config.policy.burst = 80;
        })
        .await,
    );
    let inside = town.admit(80).await;
    let waits = town.queue_up(60).await;
    let mut policy = Policy { burst: 2, ..town.node().config().policy.clone() };
    let admitted: BTreeMap<usize, _> = waits
        .into_iter()
        .enumerate()
        .map(|(number, claims)| {
            (number, tokio::spawn(poll_until_in(Arc::clone(&town.nodes[number % 2]), claims, SECOND / 4)))
        })
        .collect();
    policy.capacity = 10;
    town.queue.configure(&policy, Past::Blank).await.unwrap();
    sleep(SECOND).await;
    for (left, buyer) in (10..80).rev().zip(&inside) {
        let now = town.now().await;
        assert_eq!((now.called, now.inside), (0, left + 1), "nobody is ejected, nobody is let in");
        for room in &town.nodes {
            let status = room.status(&room.look_up(None).await);
            assert!(status.line == 60 && status.eta_seconds.is_none_or(|eta| eta.low <= eta.high), "{status:?}");
        }
        town.nodes[0].release(buyer);
        sleep(SECOND / 4).await;
    }
    policy.capacity = 100;
    let before = town.now().await.admitted_total;
    town.queue.configure(&policy, Past::Blank).await.unwrap();
    for tenth in 1..=50 {
        sleep(SECOND / 10).await;
        let now = town.now().await;
        let most = 2 + (8 * tenth) / 10;
        assert!(now.admitted_total - before <= most, "{} in {tenth} tenths", now.admitted_total - before);
        assert!(now.called + now.inside <= 100);
    }
    assert!(town.now().await.admitted_total - before >= 30, "and it does ramp");
    for (_, poll) in admitted {
        poll.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn b29_a_release_at_one_node_frees_one_slot_whatever_the_others_do() {
    let town = Arc::new(Town::of(3, |config| config.policy.capacity = 2).await);
    let [first, second] = &town.admit(2).await[..] else { unreachable!() };
    let waits = town.queue_up(2).await;
    let releases = (0..30).map(|number| {
        let (town, first) = (Arc::clone(&town), first.clone());
        tokio::spawn(async move {
            let room = &town.nodes[number % 3];
            match number % 2 {
                0 => room.release(&first),
                _ => room.leave(first.sub, Some(&first)).await,
            }
        })
    });
    futures_util::future::join_all(releases).await;
    eventually("one call", async || (town.now().await.called == 1).then_some(())).await;
    sleep(SECOND).await;
    let now = town.now().await;
    assert_eq!((now.called, now.inside, now.line), (1, 1, 1));
    assert!(town.nodes.iter().all(|room| !room.is_live(first) && room.is_live(second)));
    let turn = town.nodes[1].look_up(Some(waits[0].clone())).await;
    assert!(matches!(turn.standing, Standing::Admitted(_)));
}
