//! A gateway on the embedded engine that is killed in the middle of a draw, and everything in memory with it.

use std::path::Path;

use super::*;
use crate::support::program::stanchion;

fn with_beacon(config: &mut RoomConfig) {
    lottery(config);
    config.beacon = Some("drand quicknet round 7".to_owned());
}

/// The same, after the opening.
fn opened(config: &mut RoomConfig) {
    with_beacon(config);
    config.policy.schedule.opens_at_ms = Some(now_ms());
}

fn at(house: &House, visitor: &Browser) -> Browser {
    Browser { cookies: visitor.cookies.clone(), ..house.browser() }
}

/// Else the operator could kill the gateway until the draw suits them.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_between_the_digest_and_the_draw_publishes_nothing_else() {
    let (data, keys) = (tempfile::tempdir().unwrap(), keyring());
    let engine = in_process();
    let first = House::after(Arc::clone(&engine), keys.clone(), data.path(), with_beacon).await;
    let mut crowd: Vec<Browser> = (0..12).map(|_| first.browser()).collect();
    for visitor in &mut crowd {
        register(visitor).await;
    }
    let receipt = crowd[3].call(HttpMethod::GET, "/__room/main/receipt").await.text().to_owned();
    open_the_sale(&first, &engine).await;
    let before =
        eventually("the digest", async || Some(draw_json(&first).await).filter(|it| it["roster_digest"].is_string()))
            .await;
    drop((first, engine));

    let second = House::after(in_process(), keys.clone(), data.path(), opened).await;
    let again = draw_json(&second).await;
    for fact in ["epoch", "commitment", "beacon", "roster_digest"] {
        assert_eq!(again[fact], before[fact], "{fact}");
    }
    let mut late = second.browser();
    late.open("/shop").await;
    let path = "/api/rooms/main/beacon";
    let (status, said) = second.admin(HttpMethod::POST, path, Some(ADMIN_TOKEN), "{\"value\":\"said\"}").await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let draw = until_drawn(&second).await;
    drop(second);

    // And once more, after the draw.
    let third = House::after(in_process(), keys, data.path(), opened).await;
    let facts = ["epoch", "commitment", "roster_digest", "public_value", "seed"];
    eventually("all of it", async || {
        let now = draw_json(&third).await;
        facts.iter().all(|fact| now[fact] == draw[fact]).then_some(())
    })
    .await;
    for visitor in crowd.iter().chain([&late]) {
        at(&third, visitor).until("waiting").await;
    }
    eventually("everybody", async || (third.figure("line").await == 13).then_some(())).await;
    let places = verified(&third, data.path(), &receipt).await;
    for visitor in &crowd {
        let name = visitor.claims("stanchion_q_main")["sub"].as_str().unwrap().to_owned();
        let place = 1 + places.iter().position(|it| *it == name).unwrap();
        at(&third, visitor).until_json("/__room/main/status", |status| status["position"] == place).await;
    }
    at(&third, &late).until_json("/__room/main/status", |status| status["position"] == 13).await;
}

/// The order by the program, from what the gateway exports. It lost its memory, not the roster.
async fn verified(house: &House, dir: &Path, receipt: &str) -> Vec<String> {
    let (status, roster) = house.admin(HttpMethod::GET, "/api/rooms/main/roster", Some(ADMIN_TOKEN), "").await;
    assert_eq!((status, roster.lines().count()), (StatusCode::OK, 12));
    let [draw, roster, receipt] = [
        ("draw.json", draw_json(house).await.to_string()),
        ("roster.txt", roster),
        ("receipt.json", receipt.to_owned()),
    ]
    .map(|(name, text)| {
        std::fs::write(dir.join(name), text).unwrap();
        dir.join(name).to_str().unwrap().to_owned()
    });
    let order = dir.join("order.txt");
    let files = ["--draw", &draw, "--roster", &roster, "--receipt", &receipt, "--order", order.to_str().unwrap()];
    let output = stanchion(&[&["verify-draw", "--beacon-value", "said"][..], &files].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let order = std::fs::read_to_string(order).unwrap();
    order.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
}

#[tokio::test]
async fn another_sale_after_a_drawn_one_is_another_draw() {
    let (data, keys, engine) = (tempfile::tempdir().unwrap(), keyring(), in_process());
    let first = House::after(Arc::clone(&engine), keys.clone(), data.path(), lottery).await;
    let mut ann = first.browser();
    register(&mut ann).await;
    open_the_sale(&first, &engine).await;
    let old = until_drawn(&first).await;
    drop((first, engine));
    let next = House::after(in_process(), keys, data.path(), |config| {
        lottery(config);
        config.policy.schedule.prequeue_at_ms = Some(now_ms());
    })
    .await;
    let draw =
        eventually("a commitment", async || Some(draw_json(&next).await).filter(|draw| draw["commitment"].is_string()))
            .await;
    assert!(draw["commitment"] != old["commitment"] && draw["roster_digest"].is_null(), "{draw}");
    let mut ben = next.browser();
    register(&mut ben).await;
}

#[tokio::test]
async fn a_draw_that_cannot_be_written_down_is_done_all_the_same() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let engine = in_process();
    let house = House::after(Arc::clone(&engine), keyring(), &file.path().join("data"), lottery).await;
    let mut ann = house.browser();
    register(&mut ann).await;
    open_the_sale(&house, &engine).await;
    assert_eq!(until_drawn(&house).await["roster"], 1);
}
