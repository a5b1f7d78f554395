//! What the shop says to the gateway.

use std::time::Duration;

use http::{Method, StatusCode};
use stanchion::tokens::TokenType;

use super::{House, eventually, keyring, on_both};

/// B29.
#[tokio::test]
async fn a_release_frees_the_slot_once_and_ends_the_session() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| config.policy.capacity = 2).await;
        let (mut ann, mut ben) = (house.browser(), house.browser());
        ann.open("/").await;
        ben.open("/").await;
        eventually("both inside", async || (house.figure("inside").await == 2).then_some(())).await;
        // A visitor cannot command the gateway.
        let forged = [("stanchion-command", "release")];
        assert_eq!(ann.send(Method::GET, "/", &forged, "").await.status, StatusCode::OK);
        assert!(ann.has_session());
        assert_eq!(house.shop.last_header("stanchion-command"), "");

        let kept = ann.clone();
        let mut tab = ann.clone();
        let (answer, _) = tokio::join!(ann.open("/done"), tab.open("/done"));
        assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("stanchion-")), "{:?}", answer.headers);
        assert!(ann.cookies.keys().all(|name| !name.starts_with("stanchion_")), "{:?}", ann.cookies);
        assert_eq!(ann.cookies["basket"], "1", "the shop's own cookie passes");
        eventually("the free slot", async || (house.figure("inside").await == 1).then_some(())).await;
        let status = kept.clone().call(Method::GET, "/__room/main/status").await.json();
        assert_ne!(status["state"], "admitted", "the old cookie is dead");
        let anew = kept.clone().open("/").await;
        assert!(anew.cookie("stanchion_s_main").is_some(), "worth no more than none: a newcomer, in the free slot");
    })
    .await;
}

#[tokio::test]
async fn a_pin_keeps_the_session_as_long_as_asked_but_not_beyond_the_cap() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| {
            config.policy.session_ttl = Duration::from_mins(1);
            config.session_cap = Duration::from_mins(5);
        })
        .await;
        let mut ann = house.browser();
        let lasts = |browser: &super::super::support::browser::Browser| {
            let claims =
                house.keyring.verify(&browser.cookies["stanchion_s_main"], TokenType::Session, house.room.name(), 0);
            let claims = claims.unwrap();
            claims.exp - claims.iat
        };
        ann.open("/").await;
        assert!((58..=60).contains(&lasts(&ann)), "{}", lasts(&ann));
        ann.open("/pin/200").await;
        assert!((199..=203).contains(&lasts(&ann)), "{}", lasts(&ann));
        ann.open("/pin/30").await;
        assert!(lasts(&ann) >= 199, "a pin never shortens");
        ann.open("/pin/100000").await;
        assert!((299..=300).contains(&lasts(&ann)), "{}", lasts(&ann));
        ann.open("/pin/-1").await;
        assert_eq!(ann.open("/").await.status, StatusCode::OK);
    })
    .await;
}

#[tokio::test]
async fn when_the_shop_is_sold_out_those_inside_stay_and_the_others_are_told() {
    on_both(async |engine| {
        let house = House::on(engine, keyring(), |config| config.policy.capacity = 1).await;
        let (mut ann, mut ben) = (house.browser(), house.browser());
        ann.open("/").await;
        ben.open("/").await;
        let answer = ann.open("/sold-out").await;
        assert!(answer.headers.get("stanchion-sold-out").is_none());
        ben.until("sold_out").await;
        assert_eq!(ann.open("/").await.status, StatusCode::OK);
        let mut cat = house.browser();
        let page = cat.open("/").await;
        assert_eq!((page.status, cat.cookies.len()), (StatusCode::SERVICE_UNAVAILABLE, 0));
    })
    .await;
}
