//! G1, G3, G5: the store comes back as it was a while ago.

use std::{sync::Arc, time::Duration};

use stanchion::store::redis_engine::RedisEngine;

use super::{House, RedisServer, eventually, keyring};

#[tokio::test]
async fn a_store_that_fell_back_lets_places_and_sessions_register_before_anybody_is_called() {
    let mut redis = RedisServer::start();
    let engine = RedisEngine::connect(&redis.url()).await.unwrap();
    let house = House::on(Arc::new(engine), keyring(), |config| {
        config.policy.capacity = 2;
        config.policy.settle = Duration::from_secs(3);
    })
    .await;
    let (mut ann, mut ben, mut cat, mut dan) = (house.browser(), house.browser(), house.browser(), house.browser());
    ann.open("/").await;
    assert_eq!(redis.command("SAVE"), "+OK\r\n");
    // The store will know nothing of these: Ben is inside, Cat and Dan wait.
    ben.open("/").await;
    assert!(ben.has_session());
    cat.open("/").await;
    assert_eq!(cat.status().await["position"], 1);
    dan.open("/").await;
    assert_eq!(dan.status().await["position"], 2);
    let before = house.room.view().snapshot.clone();

    redis.restart();
    let after = eventually("another history", async || {
        let snapshot = house.room.view().snapshot.clone();
        (snapshot.since_ms != before.since_ms).then_some(snapshot)
    })
    .await;
    assert!(after.settle_until_ms > after.now_ms && after.epoch == before.epoch);
    assert_eq!((after.called, after.called_total), (0, 1), "as of the copy: only Ann was ever let in");

    // A newcomer finds a slot that looks free, and must not have it.
    let mut eve = house.browser();
    eve.open("/").await;
    assert!(!eve.has_session());
    assert_eq!(ben.open("/").await.text(), "the shop");
    assert_eq!(ann.open("/").await.text(), "the shop");
    dan.status().await;
    cat.status().await;
    eventually("everybody to be known again", async || {
        let snapshot = house.room.view().snapshot.clone();
        assert!(snapshot.called + snapshot.inside <= 2, "G1: {snapshot:?}");
        (snapshot.inside == 2 && snapshot.line == 3).then_some(())
    })
    .await;
    eventually("the room to settle", async || (!house.room.view().is_settling()).then_some(())).await;
    assert_eq!(house.room.view().snapshot.called_total, 1);
    assert_eq!(cat.status().await["position"], 1);
    assert_eq!(dan.status().await["position"], 2);
    assert_eq!(eve.status().await["position"], 3);
    ben.open("/done").await;
    cat.until("admitted").await;
    assert_eq!(dan.status().await["position"], 1);
}
