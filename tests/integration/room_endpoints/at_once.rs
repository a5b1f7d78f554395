//! The poll has two ways to its answer: on the spot for who merely waits, and through the router for everybody. They say
//! the same.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderMap, Request, header::CONTENT_LENGTH};
use http_body_util::{BodyExt as _, Full};
use stanchion::{
    gateway::{AtOnce as _, Peer},
    queue::{Method as Order, Past, Policy, Queue, Schedule},
    room,
    store::SharedEngine,
    tokens::{Keyring, SigningKey},
};
use tower::ServiceExt as _;

use super::{House, Method, StatusCode, eventually};
use crate::support::{browser::Browser, house::in_process};

/// Status, headers and document, without what a server adds on the way out and without the jitter.
type Said = (StatusCode, HeaderMap, serde_json::Value);

struct Polled {
    at_once: Option<Said>,
    routed: Said,
}

async fn said<B>(answer: http::Response<B>) -> Said
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (mut head, body) = answer.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    let body = body.collect().await.unwrap().to_bytes();
    let mut document: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert!(document.as_object_mut().unwrap().remove("next_poll_ms").is_some_and(|ms| ms.is_u64()), "{document}");
    (head.status, head.headers, document)
}

/// The same poll both ways, on the spot first, from one and the same sight of the room.
async fn poll(house: &House, visitor: &Browser) -> Polled {
    let cookies = visitor.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
    let at_once = room::at_once(Arc::clone(&house.rooms), "/__room");
    let endpoints = room::router(Arc::clone(&house.rooms), "/__room");
    let peer = Peer::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 4_000)), false);
    eventually("two polls between two looks", async || {
        let request = Request::get("/__room/main/status?to=/shop").header("cookie", &cookies).extension(peer);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let before = house.room.view().clone();
        let answer = at_once.answer(request.method(), request.uri(), request.headers(), peer);
        let routed = endpoints.clone().oneshot(request.map(axum::body::Body::new)).await.unwrap();
        if !Arc::ptr_eq(&before, &house.room.view()) {
            return None;
        }
        let at_once = match answer {
            Some(answer) => Some(said(answer).await),
            None => None,
        };
        Some(Polled { at_once, routed: said(routed).await })
    })
    .await
}

/// Polls both ways as somebody who merely waits, to whom the room says `state`.
async fn waits(house: &House, visitor: &Browser, state: &str) {
    let mut copy = visitor.clone();
    copy.until(state).await;
    let Polled { at_once, routed } = poll(house, visitor).await;
    let at_once = at_once.unwrap_or_else(|| panic!("{state}: nobody has to wait for this answer"));
    assert_eq!(at_once, routed, "{state}");
    assert_eq!(routed.2["state"], state);
}

/// Polls as somebody whom only the router can answer.
async fn is_routed(house: &House, visitor: &Browser, state: &str) -> Said {
    let Polled { at_once, routed } = poll(house, visitor).await;
    assert!(at_once.is_none(), "{state}: {at_once:?} but {routed:?}");
    assert_eq!(routed.2["state"], state, "{routed:?}");
    routed
}

async fn configure(house: &House, engine: &SharedEngine, change: impl FnOnce(&mut Policy)) {
    let mut policy = house.room.config().policy.clone();
    change(&mut policy);
    Queue::new(Arc::clone(engine), house.room.name()).configure(&policy, Past::Unknown).await.unwrap();
}

fn keyring() -> Keyring {
    Keyring::new(SigningKey::random(), Vec::new())
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

#[tokio::test]
async fn both_ways_to_a_poll_say_the_same_of_an_open_room() {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), |config| {
        config.policy.capacity = 1;
        config.message = Some("Welcome".to_owned());
    })
    .await;
    let (mut ann, mut ben, mut cat) = (house.browser(), house.browser(), house.browser());
    for visitor in [&mut ann, &mut ben, &mut cat] {
        visitor.open("/").await;
    }
    is_routed(&house, &house.browser(), "not_queued").await;
    is_routed(&house, &ann, "admitted").await;
    let mut forged = house.browser();
    forged.cookies.insert("stanchion_q_main".to_owned(), "no.such.token".to_owned());
    is_routed(&house, &forged, "not_queued").await;
    for visitor in [&ben, &cat] {
        waits(&house, visitor, "waiting").await;
    }
    let (_, headers, document) = poll(&house, &cat).await.routed;
    assert_eq!((&document["position"], &document["message"]), (&2.into(), &"Welcome".into()));
    assert_eq!((&headers["cache-control"], headers.get("set-cookie")), (&"no-store".parse().unwrap(), None));
    for mode in ["paused", "sold_out", "closed"] {
        house.set_mode(mode).await;
        waits(&house, &ben, mode).await;
    }
    house.set_mode("open").await;

    let copy = cat.clone();
    assert_eq!(cat.call(Method::POST, "/__room/main/leave").await.status, StatusCode::NO_CONTENT);
    is_routed(&house, &copy, "expired").await;
    // Ben is called: the first poll lets him in, and the second, with the cookie of before, finds him there.
    configure(&house, &engine, |policy| policy.capacity = 2).await;
    eventually("the call", async || {
        let view = house.room.view();
        (view.snapshot.called == 1 && view.snapshot.watermark.0 > 0).then_some(())
    })
    .await;
    let (_, headers, document) = is_routed(&house, &ben, "admitted").await;
    assert!(headers.contains_key("set-cookie") && document["location"] == "/shop", "{headers:?} {document}");
}

#[tokio::test]
async fn both_ways_to_a_poll_say_the_same_before_the_opening() {
    let schedule = |prequeue_at_ms, method| Schedule {
        prequeue_at_ms: Some(prequeue_at_ms),
        opens_at_ms: Some(now_ms() + 3_600_000),
        closes_at_ms: None,
        method,
    };
    let lottery = House::open(|config| config.policy.schedule = schedule(now_ms() - 1_000, Order::Lottery)).await;
    let mut ann = lottery.browser();
    ann.open("/").await;
    is_routed(&lottery, &ann, "prequeue").await;

    let engine = in_process();
    let fifo = House::on(Arc::clone(&engine), keyring(), |config| {
        config.policy.schedule = schedule(now_ms() - 1_000, Order::Fifo);
    })
    .await;
    let mut ben = fifo.browser();
    ben.open("/").await;
    waits(&fifo, &ben, "prequeue").await;
    // It is put off: who has a place waits on, who comes now is promised one.
    configure(&fifo, &engine, |policy| policy.schedule = schedule(now_ms() + 1_800_000, Order::Fifo)).await;
    waits(&fifo, &ben, "scheduled").await;
    let mut cat = fifo.browser();
    cat.open("/").await;
    is_routed(&fifo, &cat, "scheduled").await;
}
