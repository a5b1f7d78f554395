//! Several origins behind one room, and how much is asked of them at once.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use stanchion::config::Origins;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};

use super::{OK, Stage};
use crate::support::{eventually::eventually, origin::Origin, wire::Wire};

async fn ask(stage: &Stage, request: impl AsRef<[u8]>) -> Wire {
    let mut client = stage.client().await;
    client.send(request).await;
    client
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn and(
    origin: http::Uri,
) -> impl FnOnce(&mut stanchion::gateway::Limits, &mut stanchion::gateway::Deadlines, &mut Origins) {
    move |_, _, origins| origins.addresses.push(origin)
}

#[tokio::test]
async fn the_one_with_less_to_do_is_asked() {
    let (slow, quick) = (Origin::bind().await, Origin::bind().await.always(OK));
    let stage = Stage::with(slow.uri(), and(quick.uri.clone())).await;
    let mut first = ask(&stage, get("/1")).await;
    let mut inside = slow.accept().await;
    inside.head().await;
    // Equals take turns; as long as this one has not answered they are no equals.
    for _ in 0..5 {
        assert_eq!(ask(&stage, get("/")).await.head().await.status(), 200);
    }
    assert_eq!(quick.heard().len(), 5);
    inside.send(OK).await;
    assert_eq!(first.head().await.status(), 200);
}

#[tokio::test]
async fn one_that_takes_no_connection_costs_nobody_an_answer() {
    let gone = Origin::bind().await.uri();
    let well = Origin::bind().await.always(OK);
    let stage = Stage::with(gone, and(well.uri.clone())).await;
    for turn in 0..20 {
        // Nothing was sent yet, so that what may not be repeated goes to the other one too.
        let request = if turn % 2 == 0 { get("/") } else { get("/").replace("GET", "POST") };
        assert_eq!(ask(&stage, request).await.head().await.status(), 200);
    }
    assert_eq!(well.heard().len(), 20);
}

#[tokio::test]
async fn what_broke_off_is_sent_to_another_only_if_it_may_be_repeated() {
    for (method, status) in [("GET", 200), ("POST", 502)] {
        let (bad, well) = (Origin::bind().await, Origin::bind().await.always(OK));
        let stage = Stage::with(bad.uri(), and(well.uri.clone())).await;
        // The first one in turn is the bad one.
        let mut client = ask(&stage, get("/once").replace("GET", method)).await;
        let mut inside = bad.accept().await;
        inside.head().await;
        drop(inside);
        assert_eq!(client.head().await.status(), status, "{method}");
        assert_eq!(well.heard().len(), usize::from(method == "GET"), "{method}");
    }
}

#[tokio::test]
async fn who_pays_does_not_wait_behind_who_looks() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, origins| {
        (origins.reads_in_flight, origins.writes_in_flight) = (1, 1);
        deadlines.permit = Duration::from_millis(100);
    })
    .await;
    let _looks = ask(&stage, get("/picture")).await;
    let mut looked_at = origin.accept().await;
    looked_at.head().await;
    assert_eq!(ask(&stage, get("/other")).await.head().await.status(), 503);
    let mut pays = ask(&stage, get("/pay").replace("GET", "POST")).await;
    let mut inside = origin.accept().await;
    assert_eq!(inside.head().await.start, "POST /pay HTTP/1.1");
    assert_eq!(ask(&stage, get("/pay").replace("GET", "DELETE")).await.head().await.status(), 503);
    inside.send(OK).await;
    assert_eq!(pays.head().await.status(), 200);
}

#[tokio::test]
async fn what_the_shop_can_do_without_is_refused_first_and_at_once() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, _, origins| {
        origins.reads_in_flight = 4;
        origins.optional = vec!["/recommended".to_owned()];
    })
    .await;
    let mut open = Vec::new();
    for path in ["/1", "/recommended/2", "/3"] {
        let client = ask(&stage, get(path)).await;
        let mut inside = origin.accept().await;
        assert_eq!(inside.head().await.start, format!("GET {path} HTTP/1.1"));
        open.push((client, inside));
    }
    let head = ask(&stage, get("/recommended")).await.head().await;
    assert_eq!((head.status(), head.one("retry-after").unwrap().as_str()), (503, "5"));
    // The last place is for what is needed.
    let mut needed = ask(&stage, get("/recommended-not-quite")).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send(OK).await;
    assert_eq!(needed.head().await.status(), 200);
}

/// Answers `/healthz` as told and everything else with success; counts the latter.
async fn shop(is_well: Arc<AtomicBool>, asked: Arc<AtomicUsize>) -> http::Uri {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (is_well, asked) = (Arc::clone(&is_well), Arc::clone(&asked));
            tokio::spawn(async move {
                let mut buffer = vec![0; 4_096];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    let is_check = buffer[..read].starts_with(b"GET /healthz ");
                    asked.fetch_add(usize::from(!is_check), Ordering::SeqCst);
                    let fails = is_check && !is_well.load(Ordering::SeqCst);
                    let answer = if fails { OK.replace("200 OK", "503 Not Now") } else { OK.to_owned() };
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    uri
}

#[tokio::test]
async fn one_that_fails_its_health_check_is_left_alone_until_it_passes() {
    let wells = [Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true))];
    let asked = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let one = shop(Arc::clone(&wells[0]), Arc::clone(&asked[0])).await;
    let other = shop(Arc::clone(&wells[1]), Arc::clone(&asked[1])).await;
    let stage = Stage::with(one, |_, _, origins| {
        origins.addresses.push(other);
        origins.health_path = Some(http::uri::PathAndQuery::from_static("/healthz"));
    })
    .await;
    let round = async || {
        let before = [0, 1].map(|at: usize| asked[at].load(Ordering::SeqCst));
        for _ in 0..6 {
            assert_eq!(ask(&stage, get("/")).await.head().await.status(), 200);
        }
        [0, 1].map(|at: usize| asked[at].load(Ordering::SeqCst) - before[at])
    };
    assert_eq!(round().await, [3, 3], "in turn");
    wells[0].store(false, Ordering::SeqCst);
    eventually("the first to be left alone", async || (round().await == [0, 6]).then_some(())).await;
    // Better ask one that is not well than nobody.
    wells[1].store(false, Ordering::SeqCst);
    eventually("both to be asked", async || (round().await == [3, 3]).then_some(())).await;
    wells[0].store(true, Ordering::SeqCst);
    eventually("the first to be asked again", async || (round().await == [6, 0]).then_some(())).await;
}

/// Kills and starts its origin again and again while 40 clients buy: whatever may not be repeated arrives once at most, and
/// whoever was answered was heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_origin_that_dies_and_returns_under_load_is_told_nothing_twice() {
    let heard: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let stage = Stage::before(format!("http://{addr}").parse().unwrap()).await;
    let life = |listener: TcpListener| {
        let heard = Arc::clone(&heard);
        tokio::spawn(async move {
            // All connections die with it.
            let mut connections = JoinSet::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let heard = Arc::clone(&heard);
                connections.spawn(async move {
                    let mut buffer = vec![0; 4_096];
                    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                        let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
                        let name = text.split(' ').nth(1).unwrap_or_default().to_owned();
                        *heard.lock().unwrap().entry(name).or_default() += 1;
                        tokio::task::yield_now().await;
                        if stream.write_all(OK.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        })
    };
    let mut clients = JoinSet::new();
    for client in 0..40 {
        let addr = stage.addr;
        clients.spawn(async move {
            let mut answered = Vec::new();
            for turn in 0..50 {
                let name = format!("/buy/{client}/{turn}");
                let mut wire = Wire::connect(addr).await;
                wire.send(format!("POST {name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
                match wire.head().await.status() {
                    200 => answered.push(name),
                    status => assert!(matches!(status, 502 | 504), "{status}"),
                }
            }
            answered
        });
    }
    let mut origin = life(listener);
    for lives in 1.. {
        if clients.is_empty() || lives > 200 {
            break;
        }
        let heard_before = heard.lock().unwrap().len();
        while heard.lock().unwrap().len() < heard_before + 60 && !clients.is_empty() {
            tokio::task::yield_now().await;
            while clients.try_join_next().is_some_and(|answered| note(&heard, &answered.unwrap())) {}
        }
        origin.abort();
        let _ = (&mut origin).await;
        let again = eventually("the port", async || {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            socket.bind(addr).ok()?;
            socket.listen(1_024).ok()
        })
        .await;
        origin = life(again);
    }
    while let Some(answered) = clients.join_next().await {
        note(&heard, &answered.unwrap());
    }
    let heard = heard.lock().unwrap();
    assert!(heard.len() > 500, "only {} were heard", heard.len());
    assert!(heard.values().all(|times| *times == 1), "{:?}", heard.iter().find(|(_, times)| **times > 1));
}

/// Whoever was answered was heard.
fn note(heard: &Mutex<HashMap<String, u32>>, answered: &[String]) -> bool {
    let heard = heard.lock().unwrap();
    for name in answered {
        assert!(heard.contains_key(name), "{name}");
    }
    true
}

#[tokio::test]
async fn who_sends_slowly_keeps_nobody_from_paying() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, origins| {
        origins.writes_in_flight = 2;
        deadlines.permit = Duration::from_millis(100);
    })
    .await;
    let post =
        |length: u32, body: &str| format!("POST /pay HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}");
    // Small ones are read before they take a place, large ones may have half of the places.
    let mut slow = Vec::new();
    for _ in 0..5 {
        slow.push(ask(&stage, post(100, "abc")).await);
    }
    let _large = ask(&stage, post(1_000_000, "abc")).await;
    let mut uploading = origin.accept().await;
    uploading.head().await;
    assert_eq!(ask(&stage, post(1_000_000, "abc")).await.head().await.status(), 503);
    for _ in 0..3 {
        let mut pays = ask(&stage, post(3, "abc")).await;
        let mut inside = origin.accept().await;
        inside.head().await;
        assert_eq!(inside.bytes(3).await, b"abc");
        inside.send(OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).await;
        assert_eq!(pays.head().await.status(), 200);
    }
    // And one of the slow ones, when it is done.
    slow[0].send("d".repeat(97)).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    assert_eq!(inside.bytes(100).await, format!("abc{}", "d".repeat(97)).into_bytes());
    inside.send(OK).await;
    assert_eq!(slow[0].head().await.status(), 200);
}
