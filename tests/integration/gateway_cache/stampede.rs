//! Many at once.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use tokio::sync::Barrier;

use super::{KEEP, answer, ask, get, house, house_with, said, whole};
use crate::support::origin::Origin;

const MANY: usize = 200;

#[tokio::test]
async fn two_hundred_who_want_one_page_are_one_request() {
    for path in ["/event", "/public"] {
        let origin = Origin::bind().await;
        let house = house(origin.uri()).await;
        let mut crowd = join_all((0..MANY).map(|_| ask(&house, get(path, "")))).await;
        let mut inside = origin.accept().await;
        assert_eq!(inside.head().await.start, format!("GET {path} HTTP/1.1"));
        // Those who come after the crowd are served, so that all of the crowd has been looked at.
        for _ in 0..20 {
            answer(&house, get("/__room/main/line.json", "")).await;
        }
        inside.send(said(KEEP, "the page")).await;
        for client in &mut crowd {
            let (head, body) = whole(client).await;
            assert_eq!((head.status(), body.as_str()), (200, "the page"));
        }
        // Nothing else came, on this connection or another: this is the next that the shop hears.
        let mut other = ask(&house, get("/other", "Connection: close\r\n")).await;
        assert_eq!(inside.head().await.start, "GET /other HTTP/1.1");
        inside.send(said("", "other")).await;
        assert_eq!(whole(&mut other).await.1, "other");
    }
}

/// All but the first must be under way at once before any is answered.
#[tokio::test]
async fn two_hundred_answers_that_are_no_others_come_at_once_and_are_not_mixed_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: http::Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let all_are_here = Arc::new(Barrier::new(MANY - 1));
    tokio::spawn(async move {
        let first = Arc::new(std::sync::atomic::AtomicBool::new(true));
        loop {
            let mut wire = crate::support::wire::Wire::new(listener.accept().await.unwrap().0);
            let (first, all_are_here) = (Arc::clone(&first), Arc::clone(&all_are_here));
            tokio::spawn(async move {
                let mut is_open = true;
                while is_open {
                    let head = wire.head().await;
                    if !first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                        all_are_here.wait().await;
                    }
                    let basket = head.one("cookie").unwrap();
                    let lines = format!("{KEEP}Set-Cookie: seen={basket}\r\nConnection: close\r\n");
                    wire.send(said(&lines, &format!("basket of {basket}"))).await;
                    is_open = false;
                }
            });
        }
    });
    let house = house_with(uri, |config| config.origins.reads_in_flight = MANY).await;
    let crowd = (0..MANY).map(|number| {
        let house = &house;
        async move {
            let (head, body) = answer(house, get("/event", &format!("Cookie: me={number}\r\n"))).await;
            assert_eq!(body, format!("basket of me={number}"));
            assert!(head.all("set-cookie").contains(&format!("seen=me={number}")), "{:?}", head.lines);
            number
        }
    });
    let answered: BTreeSet<_> = join_all(crowd).await.into_iter().collect();
    assert_eq!(answered.len(), MANY);
}
