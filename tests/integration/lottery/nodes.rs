//! Several nodes, restarts and losses around one draw.

use super::*;
use crate::support::program::stanchion;

#[tokio::test]
async fn two_nodes_over_one_redis_agree_on_every_place() {
    let redis = RedisServer::start();
    let (one, two) = (redis_engine(&redis).await, redis_engine(&redis).await);
    let keys = keyring();
    let houses = [House::on(one.clone(), keys.clone(), lottery).await, House::on(two, keys, lottery).await];
    let mut crowd: Vec<Browser> = (0..40).map(|at| houses[at % 2].browser()).collect();
    for visitor in &mut crowd {
        register(visitor).await;
    }
    open_the_sale(&houses[0], &one).await;
    let draws = [until_drawn(&houses[0]).await, until_drawn(&houses[1]).await];
    for fact in ["commitment", "roster_digest", "public_value", "seed", "receipt_keys"] {
        assert_eq!(draws[0][fact], draws[1][fact], "{fact}");
    }
    let mut positions = Vec::new();
    for visitor in &mut crowd {
        let here = visitor.until("waiting").await["position"].as_u64().unwrap();
        for house in &houses {
            let mut there = Browser { cookies: visitor.cookies.clone(), ..house.browser() };
            assert_eq!(there.until("waiting").await["position"], here);
        }
        positions.push(here);
    }
    positions.sort_unstable();
    assert_eq!(positions, (1..=40).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_node_restarted_between_pre_queue_and_draw_finds_the_seed_and_one_with_other_keys_does_not_draw() {
    let redis = RedisServer::start();
    let engine = redis_engine(&redis).await;
    let old_key = SigningKey::random();
    let first = House::on(engine.clone(), Keyring::new(old_key.clone(), Vec::new()), lottery).await;
    let mut ann = first.browser();
    register(&mut ann).await;
    let commitment = draw_json(&first).await["commitment"].clone();
    drop(first);

    let stranger = House::on(engine.clone(), keyring(), lottery).await;
    open_the_sale(&stranger, &engine).await;
    eventually("the public value", async || draw_json(&stranger).await["public_value"].is_string().then_some(())).await;
    several_looks(&stranger).await;
    let draw = draw_json(&stranger).await;
    assert!(draw["seed"].is_null() && draw["state"] == "drawing" && draw["commitment"] == commitment, "{draw}");
    drop(stranger);

    // The keys were rotated meanwhile: the older one made the commitment.
    let keys = Keyring::new(SigningKey::random(), vec![old_key]);
    let again = House::on(engine, keys, |config| {
        lottery(config);
        config.policy.schedule.opens_at_ms = Some(now_ms());
    })
    .await;
    let draw = until_drawn(&again).await;
    assert_eq!((&draw["commitment"], &draw["roster"]), (&commitment, &1.into()));
    let mut ann = Browser { cookies: ann.cookies, ..again.browser() };
    assert_eq!(ann.until("waiting").await["position"], 1);
}

/// Else whoever can roll a store back could draw again, until the order suits them.
#[tokio::test]
async fn what_was_published_stays_when_the_store_falls_back_to_before_it() {
    let mut redis = RedisServer::start();
    let engine = redis_engine(&redis).await;
    let house = House::on(engine.clone(), keyring(), |config| {
        lottery(config);
        config.policy.settle = Duration::from_secs(1);
    })
    .await;
    let mut crowd: Vec<Browser> = (0..20).map(|_| house.browser()).collect();
    for visitor in &mut crowd[..15] {
        register(visitor).await;
    }
    assert_eq!(redis.command("SAVE"), "+OK\r\n");
    for visitor in &mut crowd[15..] {
        register(visitor).await;
    }
    open_the_sale(&house, &engine).await;
    let draw = until_drawn(&house).await;
    assert_eq!(draw["roster"], 20);
    let mut places = Vec::new();
    for visitor in &mut crowd {
        places.push(visitor.until("waiting").await["position"].clone());
    }
    let since_ms = house.room.view().snapshot.since_ms;

    redis.restart();
    eventually("another history", async || (house.room.view().snapshot.since_ms != since_ms).then_some(())).await;
    // The copy is of before the opening was moved up, too.
    open_the_sale(&house, &engine).await;
    let again = eventually("the draw", async || {
        let again = draw_json(&house).await;
        for fact in ["commitment", "roster_digest", "public_value"] {
            assert_eq!(again[fact], draw[fact], "{fact}");
        }
        Some(again).filter(|again| again["seed"].is_string() && again["state"] == "open")
    })
    .await;
    assert_eq!(again["seed"], draw["seed"]);
    for visitor in &mut crowd {
        visitor.status().await;
    }
    eventually("everybody", async || (house.room.view().snapshot.line == 20).then_some(())).await;
    for (visitor, place) in crowd.iter_mut().zip(&places) {
        assert_eq!(visitor.until_json("/__room/main/status", |it| !it["position"].is_null()).await["position"], *place);
    }
}

/// What the admin API says is wrong between the gateways.
async fn warnings(house: &House) -> String {
    house.figure("warnings").await.to_string()
}

/// The operator who may name the beacon late chooses who wins.
#[tokio::test]
async fn the_beacon_is_sealed_with_the_commitment_and_nodes_configured_otherwise_follow() {
    let (engine, keys) = (in_process(), keyring());
    let with_beacon = |beacon: Option<&'static str>| {
        move |config: &mut RoomConfig| {
            lottery(config);
            config.beacon = beacon.map(str::to_owned);
        }
    };
    let first = House::on(engine.clone(), keys.clone(), with_beacon(Some("drand quicknet round 7"))).await;
    let second = House::on(engine.clone(), keys.clone(), with_beacon(None)).await;
    let third = House::on(engine.clone(), keys, with_beacon(Some("drand quicknet round 8"))).await;
    let mut ann = second.browser();
    register(&mut ann).await;
    let receipt = ann.call(HttpMethod::GET, "/__room/main/receipt").await.json();
    let commitment = draw_json(&first).await["commitment"].as_str().unwrap().to_owned();
    assert!(commitment.ends_with(":drand quicknet round 7"), "{commitment}");
    assert_eq!(receipt["commitment"], commitment);
    for house in [&second, &third] {
        let draw = draw_json(house).await;
        assert_eq!(
            (&draw["beacon"], &draw["commitment"]),
            (&"drand quicknet round 7".into(), &commitment.clone().into())
        );
        let said = eventually("a warning", async || Some(warnings(house).await).filter(|it| it != "[]")).await;
        assert!(said.contains("commitment names beacon \\\"drand quicknet round 7\\\""), "{said}");
    }
    assert_eq!(warnings(&first).await, "[]");

    open_the_sale(&first, &engine).await;
    eventually("the digest", async || draw_json(&second).await["roster_digest"].is_string().then_some(())).await;
    for house in [&first, &second, &third] {
        several_looks(house).await;
    }
    assert!(draw_json(&second).await["public_value"].is_null(), "no node takes the digest instead");
    let path = "/api/rooms/main/beacon";
    let (status, said) = second.admin(HttpMethod::POST, path, Some(ADMIN_TOKEN), "{\"value\":\"c0ffee\"}").await;
    assert_eq!(status, StatusCode::OK, "{said}");
    assert_eq!(until_drawn(&third).await["public_value"], "c0ffee");
}

#[tokio::test]
async fn gateways_that_do_not_agree_warn_until_they_do() {
    let (engine, old_key) = (in_process(), SigningKey::random());
    let keys = |keys: &[&SigningKey]| Keyring::new(keys[0].clone(), keys[1..].iter().copied().cloned().collect());
    let first = House::on(engine.clone(), keys(&[&old_key]), |_| ()).await;
    // A rotation on the way is no discord.
    let rotated = House::on(engine.clone(), keys(&[&SigningKey::random(), &old_key]), |_| ()).await;
    several_looks(&rotated).await;
    assert_eq!((warnings(&first).await, warnings(&rotated).await), ("[]".to_owned(), "[]".to_owned()));

    let stranger = House::on(engine.clone(), keyring(), |_| ()).await;
    let strict = House::on(engine, keys(&[&old_key]), |config| config.policy.capacity = 1).await;
    let said = eventually("both warnings", async || {
        Some(warnings(&first).await).filter(|said| said.contains("other keys") && said.contains("other settings"))
    })
    .await;
    assert!(said.contains("Give all gateways the same"), "with the cure: {said}");
    drop((stranger, strict));
    eventually("peace", async || (warnings(&first).await == "[]").then_some(())).await;
}

/// Nobody draws whom the published roster does not name, and nobody loses their place by it.
#[tokio::test]
async fn after_a_loss_in_the_pre_queue_who_is_not_back_in_time_is_next_behind_the_drawn() {
    let redis = RedisServer::start();
    let engine = redis_engine(&redis).await;
    let house = House::on(engine.clone(), keyring(), lottery).await;
    let mut crowd: Vec<Browser> = (0..10).map(|_| house.browser()).collect();
    for visitor in &mut crowd {
        register(visitor).await;
    }
    let kept = crowd[8].call(HttpMethod::GET, "/__room/main/receipt").await.text().to_owned();
    let since_ms = house.room.view().snapshot.since_ms;
    assert_eq!(redis.command("FLUSHALL"), "+OK\r\n");
    eventually("another history", async || (house.room.view().snapshot.since_ms != since_ms).then_some(())).await;
    // These poll before it closes; who only asks for the receipt is back, too.
    for visitor in &mut crowd[..5] {
        assert_eq!(visitor.status().await["state"], "prequeue");
    }
    assert_eq!(crowd[5].call(HttpMethod::GET, "/__room/main/receipt").await.status, StatusCode::OK);
    let mut new = house.browser();
    register(&mut new).await;
    eventually("the roster", async || (draw_json(&house).await["roster"] == 7).then_some(())).await;

    open_the_sale(&house, &engine).await;
    let draw = until_drawn(&house).await;
    assert_eq!(draw["roster"], 7);
    // The last of them comes first.
    for visitor in crowd[6..].iter_mut().rev() {
        visitor.until("waiting").await;
    }
    let mut late = house.browser();
    late.open("/shop").await;
    let place = async |visitor: &mut Browser, position: usize| {
        visitor.until_json("/__room/main/status", |status| status["position"] == position).await
    };
    let mut drawn = Vec::new();
    for visitor in crowd[..6].iter_mut().chain([&mut new]) {
        let status = visitor.until_json("/__room/main/status", |status| !status["position"].is_null()).await;
        assert!(status["message"].is_null(), "{status}");
        drawn.push(status["position"].as_u64().unwrap());
    }
    drawn.sort_unstable();
    assert_eq!(drawn, (1..=7).collect::<Vec<_>>());
    for (at, visitor) in crowd[6..].iter_mut().enumerate() {
        let status = place(visitor, 8 + at).await;
        assert!(status["message"].as_str().unwrap().contains("lost before the draw"), "{status}");
        assert!(visitor.open("/__room/main").await.text().contains("directly behind those who did"), "and the page");
        let receipt = visitor.call(HttpMethod::GET, "/__room/main/receipt").await;
        assert_eq!(receipt.status, StatusCode::NOT_FOUND, "{}", receipt.text());
    }
    place(&mut late, 12).await;

    // All of it can be verified: who drew is in the roster, who did not is not.
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (_, roster) = house.admin(HttpMethod::GET, "/api/rooms/main/roster", Some(ADMIN_TOKEN), "").await;
    let (draw, roster) = (file("draw.json", &draw.to_string()), file("roster.txt", &roster));
    let verify = |receipt: &str| {
        let receipt = file("receipt.json", receipt);
        let output = stanchion(&["verify-draw", "--draw", &draw, "--roster", &roster, "--receipt", &receipt]);
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for visitor in crowd[..6].iter_mut().chain([&mut new]) {
        let position = visitor.status().await["position"].clone();
        let said = verify(visitor.call(HttpMethod::GET, "/__room/main/receipt").await.text());
        assert!(said.contains(&format!("Place: {position} of 7")), "{said}");
    }
    let said = verify(&kept);
    assert!(said.contains("the store lost the roster in the pre-queue"), "{said}");
}
