//! What the operator may do, and what not.

use super::*;

async fn post(house: &House, what: &str, body: &str) -> (StatusCode, String) {
    house.admin(HttpMethod::POST, &format!("/api/rooms/main/{what}"), Some(ADMIN_TOKEN), body).await
}

#[tokio::test]
async fn nothing_is_changed_or_exported_without_the_token() {
    let house = House::open(lottery).await;
    for (method, what) in [
        (HttpMethod::POST, "reset"),
        (HttpMethod::POST, "beacon"),
        (HttpMethod::POST, "revoke"),
        (HttpMethod::GET, "roster"),
    ] {
        let path = format!("/api/rooms/main/{what}");
        assert_eq!(house.admin(method.clone(), &path, None, "{}").await.0, StatusCode::UNAUTHORIZED, "{what}");
        assert_eq!(house.admin(method, &path, Some("guess"), "{}").await.0, StatusCode::FORBIDDEN, "{what}");
    }
    assert_eq!(house.figure("epoch").await, 1);
}

/// B26: numbers do not survive a reset.
#[tokio::test]
async fn b26_after_a_reset_everybody_joins_anew() {
    let house = House::open(|config| config.policy.capacity = 1).await;
    let (mut ann, mut ben, mut cat) = (house.browser(), house.browser(), house.browser());
    ann.open("/").await;
    ben.open("/").await;
    cat.open("/").await;
    assert_eq!(cat.status().await["position"], 2);
    let (status, text) = post(&house, "reset", "").await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert!(text.contains("\"epoch\":2"), "{text}");
    eventually("the new epoch", async || (house.figure("epoch").await == 2).then_some(())).await;
    for visitor in [&mut ann, &mut ben, &mut cat] {
        assert_eq!(visitor.status().await["state"], "not_queued");
    }
    // Cat is first now, Ann's session is worth nothing.
    eventually("Cat to be let in", async || {
        let mut tab = cat.clone();
        (tab.open("/").await.status == StatusCode::OK).then_some(())
    })
    .await;
    assert_eq!(ann.open("/").await.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_reset_lottery_is_another_draw() {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), lottery).await;
    let mut ann = house.browser();
    register(&mut ann).await;
    let first = draw_json(&house).await;
    post(&house, "reset", "").await;
    let second = eventually("the new epoch", async || {
        Some(draw_json(&house).await).filter(|draw| draw["epoch"] == 2 && draw["commitment"].is_string())
    })
    .await;
    assert_ne!(second["commitment"], first["commitment"], "a seed serves once");
    assert_eq!(second["roster"], 0);
    register(&mut ann).await;
    assert_eq!(ann.claims("stanchion_q_main")["epoch"], 2);
}

/// Else it would draw among nobody at once, and whoever comes for it would find it done.
#[tokio::test]
async fn a_lottery_that_has_opened_is_reset_only_with_new_times() {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), lottery).await;
    let mut ann = house.browser();
    register(&mut ann).await;
    open_the_sale(&house, &engine).await;
    let draw = until_drawn(&house).await;
    let (status, said) = post(&house, "reset", "").await;
    assert_eq!(status, StatusCode::CONFLICT, "{said}");
    assert!(said.contains("opens_at is in the past") && said.contains("of the next sale"), "with the cure: {said}");
    several_looks(&house).await;
    assert_eq!(draw_json(&house).await, draw, "nothing changed");
    // A restart with the next sale's times, then the reset.
    configure(&house, &engine, |_| ()).await;
    eventually("the times", async || (draw_json(&house).await["state"] == "prequeue").then_some(())).await;
    let (status, said) = post(&house, "reset", "").await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let room: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&room["epoch"], &room["draw"]["epoch"], &room["draw"]["roster"]), (&2.into(), &2.into(), &0.into()));
    assert_eq!(
        (&room["mode"], &room["draw"]["seed"]),
        (&"prequeue".into(), &serde_json::Value::Null),
        "one epoch's: {said}"
    );
    register(&mut ann).await;
}

#[tokio::test]
async fn the_beacon_is_named_before_and_taken_once_after_the_pre_queue() {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), |config| {
        lottery(config);
        config.beacon = Some("drand quicknet round 12345678".to_owned());
    })
    .await;
    let mut ann = house.browser();
    register(&mut ann).await;
    assert_eq!(draw_json(&house).await["beacon"], "drand quicknet round 12345678");
    let give = async |value: &str| post(&house, "beacon", &serde_json::json!({ "value": value }).to_string()).await;
    assert_eq!(give("c0ffee").await.0, StatusCode::CONFLICT, "the pre-queue is open");
    open_the_sale(&house, &engine).await;
    eventually("the digest", async || draw_json(&house).await["roster_digest"].is_string().then_some(())).await;
    several_looks(&house).await;
    let draw = draw_json(&house).await;
    assert!(draw["public_value"].is_null() && draw["state"] == "drawing", "it waits for the beacon: {draw}");
    assert_eq!(ann.status().await["state"], "prequeue");
    for bad in ["", " c0ffee", "caf\u{e9}", "a\nb", &"x".repeat(257)] {
        assert_eq!(give(bad).await.0, StatusCode::UNPROCESSABLE_ENTITY, "{bad:?}");
    }
    assert_eq!(post(&house, "beacon", "{}").await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(give("c0ffee").await.0, StatusCode::OK);
    assert_eq!(give("decade").await.0, StatusCode::CONFLICT, "another one");
    assert_eq!(give("c0ffee").await.0, StatusCode::OK, "the answer to the first may have been lost");
    let draw = until_drawn(&house).await;
    assert_eq!(draw["public_value"], "c0ffee");
    assert_eq!(ann.until("waiting").await["position"], 1);
    let view: serde_json::Value =
        serde_json::from_str(&house.admin(HttpMethod::GET, "/api/rooms/main", None, "").await.1).unwrap();
    assert_eq!((&view["epoch"], &view["method"], &view["draw"]["roster"]), (&1.into(), &"lottery".into(), &1.into()));
}

#[tokio::test]
async fn without_a_named_beacon_the_operator_has_no_say() {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), lottery).await;
    let give = async |house: &House| post(house, "beacon", "{\"value\":\"c0ffee\"}").await.0;
    assert_eq!(give(&house).await, StatusCode::CONFLICT);
    open_the_sale(&house, &engine).await;
    let draw = until_drawn(&house).await;
    assert_eq!(draw["public_value"], draw["roster_digest"]);
    assert_eq!(give(&house).await, StatusCode::CONFLICT);
    let fifo = House::open(|_| ()).await;
    assert_eq!(give(&fifo).await, StatusCode::CONFLICT);
    let roster = fifo.admin(HttpMethod::GET, "/api/rooms/main/roster", Some(ADMIN_TOKEN), "").await;
    assert_eq!(roster.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_revoked_session_ends_on_every_node_within_a_second() {
    let redis = RedisServer::start();
    let (one, two, keys) = (redis_engine(&redis).await, redis_engine(&redis).await, keyring());
    let here = House::on(one.clone(), keys.clone(), |config| config.policy.capacity = 2).await;
    let there = House::on(two, keys.clone(), |config| config.policy.capacity = 2).await;
    let mut ann = there.browser();
    ann.open("/").await;
    assert!(ann.has_session());
    let whom = ann.claims("stanchion_s_main")["sub"].as_str().unwrap().to_owned();
    let (status, text) = post(&here, "revoke", &serde_json::json!({ "visitor": whom }).to_string()).await;
    assert_eq!((status, text.contains("\"was_known\":true")), (StatusCode::OK, true), "{text}");
    let began = std::time::Instant::now();
    eventually("the other node to know", async || {
        let mut copy = ann.clone();
        copy.cookies.remove("stanchion_q_main");
        (copy.call(HttpMethod::GET, "/__room/main/status").await.json()["state"] == "not_queued").then_some(())
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // So does a node that starts afterwards.
    let later = House::on(one, keys, |config| config.policy.capacity = 2).await;
    let mut copy = Browser { cookies: ann.cookies.clone(), ..later.browser() };
    assert_eq!(copy.call(HttpMethod::GET, "/__room/main/status").await.json()["state"], "not_queued");
    assert_eq!(post(&here, "revoke", "{\"visitor\":\"nobody\"}").await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let (_, text) = post(&here, "revoke", &serde_json::json!({ "visitor": whom }).to_string()).await;
    assert!(text.contains("\"was_known\":false"), "{text}");
}

/// The store and all nodes are gone at once: nobody but the visitors knows that there was a reset.
#[tokio::test]
async fn a_token_of_a_later_epoch_tells_a_store_that_lost_it() {
    let keys = keyring();
    let first = House::on(in_process(), keys.clone(), |config| config.policy.capacity = 0).await;
    let mut old = first.browser();
    old.open("/").await;
    post(&first, "reset", "").await;
    eventually("the new epoch", async || (first.figure("epoch").await == 2).then_some(())).await;
    let (mut ann, mut ben) = (first.browser(), first.browser());
    ann.open("/").await;
    ben.open("/").await;
    drop(first);

    let second = House::on(in_process(), keys, |config| config.policy.capacity = 0).await;
    let at_second = |visitor: Browser| Browser { cookies: visitor.cookies, ..second.browser() };
    let (mut ann, mut ben, mut old) = (at_second(ann), at_second(ben), at_second(old));
    assert_eq!(ben.status().await["state"], "waiting", "believed at once");
    eventually("the epoch", async || (second.figure("epoch").await == 2).then_some(())).await;
    let place = async |visitor: &mut Browser, ahead: u64| {
        let status = visitor.until_json("/__room/main/status", |status| status["ahead"] == ahead).await;
        assert_eq!(status["state"], "waiting");
    };
    eventually("both to be back", async || {
        ben.clone().status().await;
        ann.clone().status().await;
        (second.figure("line").await == 2).then_some(())
    })
    .await;
    place(&mut ann, 0).await;
    place(&mut ben, 1).await;
    assert_eq!(old.status().await["state"], "not_queued", "of before the reset");
}
