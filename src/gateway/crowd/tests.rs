use std::net::Ipv4Addr;

use futures_util::FutureExt as _;

use super::*;

const OFFICE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn other(last: u8) -> IpAddr {
    Ipv4Addr::new(198, 51, 100, last).into()
}

#[tokio::test(start_paused = true)]
async fn an_office_is_welcome_while_there_is_room_and_has_a_share_when_there_is_not() {
    let crowd = Crowd::new(20, 3);
    let mut places = Vec::new();
    // Four fifths of the places, far beyond the share.
    for _ in 0..17 {
        places.push(crowd.enter(Some(OFFICE)).await.unwrap());
    }
    assert!(crowd.enter(Some(OFFICE)).await.is_none(), "nearly full");
    let home = crowd.enter(Some(other(1))).await.unwrap();
    places.truncate(2);
    assert!(crowd.enter(Some(OFFICE)).await.is_some());
    drop((home, places));
    assert!(crowd.lock().open.is_empty() && crowd.lock().idle.is_empty(), "nothing is remembered of who left");
}

#[tokio::test(start_paused = true)]
async fn whoever_has_a_share_and_idles_makes_room_for_its_own() {
    let crowd = Crowd::new(5, 2);
    let mut places = Vec::new();
    for _ in 0..5 {
        places.push(crowd.enter(Some(OFFICE)).await.unwrap());
    }
    let idle = places.pop().unwrap();
    let rest = idle.rest();
    let next = crowd.enter(Some(OFFICE));
    tokio::pin!(next);
    assert!(next.as_mut().now_or_never().is_none(), "the place is not free yet");
    assert!(rest.ended().now_or_never().is_some(), "but asked for");
    drop(rest);
    drop(idle);
    assert!(next.await.is_some());
}

#[tokio::test(start_paused = true)]
async fn when_all_places_are_taken_those_with_most_and_idle_longest_make_room() {
    let crowd = Crowd::new(5, 5);
    let mut places = Vec::new();
    for address in [other(1), OFFICE, OFFICE, OFFICE, other(2)] {
        places.push(crowd.enter(Some(address)).await.unwrap());
    }
    let mut rests = Vec::new();
    // The office's second connection has been idle the longest of its own.
    for index in [0, 2, 3, 4] {
        rests.push((index, places[index].rest()));
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let next = crowd.enter(Some(other(3)));
    tokio::pin!(next);
    assert!(next.as_mut().now_or_never().is_none());
    let asked: Vec<usize> =
        rests.iter().filter(|(_, rest)| rest.ended().now_or_never().is_some()).map(|(index, _)| *index).collect();
    assert_eq!(asked, [2]);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_place_gets_it_when_somebody_becomes_idle() {
    let crowd = Crowd::new(1, 1);
    let busy = crowd.enter(Some(other(1))).await.unwrap();
    let waiting = tokio::spawn({
        let crowd = crowd.clone();
        async move { crowd.enter(Some(other(2))).await.is_some() }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    let rest = busy.rest();
    rest.ended().await;
    drop(rest);
    drop(busy);
    assert!(waiting.await.unwrap());
}

#[tokio::test]
async fn the_customers_of_one_provider_are_told_apart_over_ipv6() {
    let of = |text: &str| Address::of(text.parse().unwrap());
    assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:3::4"));
    assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    assert_eq!(of("::ffff:192.0.2.1"), Address::of(OFFICE));
}
