//! B15: one session is for one person, whatever their addresses; `max_parallel` keeps a crowd from sharing it.

use std::net::{Ipv4Addr, SocketAddr};

use futures_util::FutureExt as _;
use http::StatusCode;
use stanchion::admission::Standing;
use tokio::net::TcpSocket;

use super::{
    super::support::{
        origin::Origin,
        wire::{Wire, soon},
    },
    House, eventually, in_process, keyring,
};

const PLACES: usize = 4;

/// A house before an origin in the hands of the test, and the cookie of somebody inside.
async fn house() -> (House, Origin, String) {
    let origin = Origin::bind().await;
    let house = House::on(in_process(), keyring(), |config| {
        config.origins = stanchion::config::Origins::at(origin.uri());
        config.max_parallel = u32::try_from(PLACES).unwrap();
    })
    .await;
    let Standing::Admitted(session) = house.room.come(None, true).await.standing else { panic!("not let in") };
    let cookie = format!("stanchion_s_main={}", house.keyring.mint(&session));
    (house, origin, cookie)
}

/// A request of a browser of its own at an address of its own.
async fn ask(house: &House, number: usize, cookie: &str, more: &str) -> Wire {
    let gateway: SocketAddr = house.url.strip_prefix("http://").unwrap().parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    let from = Ipv4Addr::new(127, 0, 0, u8::try_from(1 + number % 200).unwrap());
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let mut wire = Wire::new(soon("a connection", socket.connect(gateway)).await.unwrap());
    let (accept, agent) = ("application/json", format!("Agent/{number}"));
    let head = format!("Host: a\r\nAccept: {accept}\r\nUser-Agent: {agent}\r\nCookie: {cookie}\r\n{more}");
    wire.send(format!("GET /{number} HTTP/1.1\r\n{head}\r\n")).await;
    wire
}

async fn refused(wire: &mut Wire) {
    let head = wire.head().await;
    assert_eq!((head.status(), head.one("retry-after")), (429, Some("2".to_owned())));
    assert_eq!(head.one("content-type").unwrap(), "application/problem+json");
    assert_eq!((head.one("cache-control").unwrap().as_str(), head.one("set-cookie")), ("no-store", None));
    let length = head.one("content-length").unwrap().parse().unwrap();
    let problem: serde_json::Value = serde_json::from_slice(&wire.bytes(length).await).unwrap();
    assert_eq!((&problem["error"], &problem["status"]), (&"too_parallel".into(), &429.into()));
}

const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
const PART: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nok";

#[tokio::test]
async fn b15_a_shared_session_reaches_the_shop_so_many_times_at_once_and_holds_one_slot() {
    let (house, origin, cookie) = house().await;
    let mut crowd = Vec::new();
    for number in 0..40 {
        crowd.push(ask(&house, number, &cookie, "").await);
    }
    let mut inside = Vec::new();
    for _ in 0..PLACES {
        let mut wire = origin.accept().await;
        let path = wire.head().await.start;
        inside.push((path.split(['/', ' ']).nth(2).unwrap().parse::<usize>().unwrap(), wire));
    }
    for (number, wire) in crowd.iter_mut().enumerate() {
        if inside.iter().all(|(passed, _)| *passed != number) {
            refused(wire).await;
        }
    }
    assert!(origin.accept().now_or_never().is_none(), "one more came through");
    for (number, wire) in &mut inside {
        wire.send(OK).await;
        assert_eq!(crowd[*number].head().await.status(), 200, "no address and no agent is refused as such");
    }
    drop(inside);
    let mut again = ask(&house, 150, &cookie, "").await;
    let mut wire = origin.accept().await;
    wire.head().await;
    wire.send(OK).await;
    assert_eq!(again.head().await.status(), 200);
    eventually("the view", async || (house.figure("inside").await == 1).then_some(())).await;
    assert_eq!(house.figure("admitted_total").await, 1);
}

#[tokio::test]
async fn a_request_counts_until_its_answer_or_its_tunnel_has_ended() {
    let (house, origin, cookie) = house().await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";
    let (mut clients, mut shop) = (Vec::new(), Vec::new());
    for number in 0..PLACES {
        let mut client = ask(&house, number, &cookie, if number == 0 { upgrade } else { "" }).await;
        let mut wire = origin.accept().await;
        wire.head().await;
        let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        wire.send(if number == 0 { switch } else { PART }).await;
        let status = client.head().await.status();
        assert_eq!(status, if number == 0 { 101 } else { 200 });
        clients.push(client);
        shop.push(wire);
    }
    refused(&mut ask(&house, 10, &cookie, "").await).await;
    // The end of a body, of a tunnel, and a visitor who goes away: each makes room for one.
    shop[1].send("ok").await;
    assert_eq!(clients[1].bytes(4).await, b"okok");
    drop((clients.remove(0), shop.remove(0)));
    drop(clients.pop());
    for number in 20..23 {
        // The gateway may not have noticed yet: then it refuses, and another try is due.
        let mut client = loop {
            let mut client = ask(&house, number, &cookie, "").await;
            tokio::select! {
                wire = origin.accept() => {
                    shop.push(wire);
                    break client;
                }
                () = refused(&mut client) => {}
            }
        };
        let wire = shop.last_mut().unwrap();
        wire.head().await;
        wire.send(PART).await;
        assert_eq!(client.head().await.status(), 200);
        clients.push(client);
    }
    refused(&mut ask(&house, 30, &cookie, "").await).await;
}

#[tokio::test]
async fn without_a_bound_everybody_passes() {
    let house = House::open(|config| config.max_parallel = 0).await;
    let mut ann = house.browser();
    ann.open("/").await;
    let tabs = (0..60).map(|_| {
        let mut tab = ann.clone();
        async move { tab.open("/").await.status }
    });
    for status in futures_util::future::join_all(tabs).await {
        assert_eq!(status, StatusCode::OK);
    }
}
