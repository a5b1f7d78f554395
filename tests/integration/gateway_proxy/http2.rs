//! HTTP/2, frame by frame: what its clients can do wrong.

use std::time::Duration;

use super::{OK, Stage};
use crate::support::{
    origin::Origin,
    wire::{Wire, soon},
};

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Fields without any compression (RFC 7541 §6.2.2), so that all may be said.
fn fields(all: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    all.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":authority", "shop.test"), (":path", "/")];

/// A connection on which each side has said hello; `settings` are the client's, as they are on the wire.
async fn hello(stage: &Stage, settings: &[u8]) -> Wire {
    let mut client = stage.client().await;
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    client.send(frame(SETTINGS, 0, 0, settings)).await;
    client
}

/// The next frame that is none of `SETTINGS`, `WINDOW_UPDATE` and `PING`: kind, stream and payload.
async fn next(client: &mut Wire) -> (u8, u32, Vec<u8>) {
    loop {
        let head = client.bytes(9).await;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let payload = client.bytes(usize::try_from(length).unwrap()).await;
        if !matches!(head[3], SETTINGS | 6 | 8) {
            return (head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload);
        }
    }
}

#[tokio::test]
async fn a_request_by_prior_knowledge_is_served() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    let mut client = hello(&stage, &[]).await;
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields(&GET))).await;
    assert_eq!(next(&mut client).await.0, HEADERS);
    let (_, stream, body) = next(&mut client).await;
    assert_eq!((stream, body.as_slice()), (1, &b"ok"[..]));
}

/// Whatever would be read as another request over HTTP/1 never gets that far.
#[tokio::test]
async fn nothing_is_smuggled_into_http1() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    let path = |path: &'static str| {
        let mut all = GET.to_vec();
        all[3].1 = path;
        all
    };
    let with = |name, value| [&GET[..], &[(name, value)]].concat();
    for request in [
        with("transfer-encoding", "chunked"),
        with("connection", "close"),
        with("upgrade", "h2c"),
        with("X-Upper", "1"),
        with("x\r\nsmuggled", "1"),
        with("x", "1\r\nsmuggled: 1"),
        with("x", "1\0"),
        with(":path", "/smuggled"),
        with("content-length", "5"),
        path("/ HTTP/1.1\r\nsmuggled: 1"),
        path("/a b"),
        path(""),
        path("smuggled"),
    ] {
        let mut client = hello(&stage, &[]).await;
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields(&request))).await;
        let (kind, _, payload) = next(&mut client).await;
        let is_refused = matches!(kind, RST_STREAM | GOAWAY) || kind == HEADERS && payload.first() == Some(&0x8c);
        assert!(is_refused, "{request:?}: frame {kind}, {payload:?}");
    }
    assert_eq!(origin.heard(), Vec::<String>::new());
}

/// The bounds of HTTP/1 hold here, too.
#[tokio::test]
async fn too_long_a_target_and_too_many_fields_are_refused() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::with(origin.uri.clone(), |limits, _, _| {
        limits.target = 20;
        limits.headers = 10;
    })
    .await;
    let mut client = hello(&stage, &[]).await;
    let mut long = GET.to_vec();
    long[3].1 = "/a/path/that/is/rather/long";
    let many = [&GET[..], &[("x", "1"); 20]].concat();
    for (stream, request) in [(1, long), (3, many)] {
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields(&request))).await;
        while next(&mut client).await.0 != HEADERS {}
        assert_eq!(origin.heard(), Vec::<String>::new(), "{stream}");
    }
}

/// CVE-2023-44487.
#[tokio::test]
async fn whoever_resets_all_it_asked_for_is_cut_off() {
    let origin = Origin::bind().await;
    let stage = Stage::before(origin.uri()).await;
    let mut client = hello(&stage, &[]).await;
    let flood: Vec<u8> = (0..5_000_u32)
        .flat_map(|index| {
            let stream = 2 * index + 1;
            let ask = frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields(&GET));
            [ask, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
        })
        .collect();
    client.send_while_open(flood).await;
    client.closed().await;
    // And others are served.
    let mut other = stage.client().await;
    other.send("GET /__room/hello HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(other.head().await.status(), 200);
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let origin = Origin::bind().await;
    let stage = Stage::before(origin.uri()).await;
    let mut client = hello(&stage, &[]).await;
    client.send(frame(HEADERS, END_STREAM, 1, &fields(&GET))).await;
    let piece = fields(&[("x", &"y".repeat(100))]).repeat(100);
    for _ in 0..1_000 {
        client.send_while_open(frame(CONTINUATION, 0, 1, &piece)).await;
    }
    client.closed().await;
}

#[tokio::test]
async fn a_large_head_is_refused_and_the_connection_goes_on() {
    let origin = Origin::bind().await.always(OK);
    let stage = Stage::before(origin.uri.clone()).await;
    let mut client = hello(&stage, &[]).await;
    let large: Vec<(&str, String)> = (0..300).map(|_| ("x", "y".repeat(100))).collect();
    let large: Vec<(&str, &str)> = large.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let block = [fields(&GET), fields(&large)].concat();
    let (first, rest) = block.split_at(16_000);
    client.send(frame(HEADERS, END_STREAM, 1, first)).await;
    let pieces: Vec<&[u8]> = rest.chunks(16_000).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let flags = if index + 1 == pieces.len() { END_HEADERS } else { 0 };
        client.send(frame(CONTINUATION, flags, 1, piece)).await;
    }
    let (kind, stream, _) = next(&mut client).await;
    assert_eq!((kind, stream), (HEADERS, 1), "431");
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, &fields(&GET))).await;
    let (mut kind, mut stream) = (0, 0);
    while (kind, stream) != (HEADERS, 3) {
        (kind, stream, _) = next(&mut client).await;
    }
    assert_eq!(origin.heard().len(), 1);
}

/// An answer that its client opens no window for gives back what it holds: the origin's connection, its share of those.
#[tokio::test]
async fn an_answer_that_nobody_takes_is_given_up_and_the_others_go_on() {
    let origin = Origin::bind().await;
    let stage = Stage::with(origin.uri(), |_, deadlines, origins| {
        deadlines.client_write = Duration::from_millis(300);
        deadlines.first_request = Duration::from_millis(100);
        origins.reads_in_flight = 1;
    })
    .await;
    // SETTINGS_INITIAL_WINDOW_SIZE 0.
    let mut client = hello(&stage, &[0, 4, 0, 0, 0, 0]).await;
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields(&GET))).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").await;
    inside.send_while_open(vec![b'x'; 10_000]).await;
    assert_eq!(next(&mut client).await.0, HEADERS);
    soon("the origin to be let go", inside.closed()).await;
    // Its place is free: the same client is served on another stream.
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, &fields(&GET))).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    let (kind, stream, _) = next(&mut client).await;
    assert_eq!((kind, stream), (HEADERS, 3));
}

#[tokio::test]
async fn stopping_says_goaway_and_lets_the_answer_through() {
    let origin = Origin::bind().await;
    let stage = Stage::before(origin.uri()).await;
    let mut client = hello(&stage, &[]).await;
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields(&GET))).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    stage.shutdown.stop();
    assert_eq!(next(&mut client).await.0, GOAWAY);
    inside.send(OK).await;
    let (mut kind, mut body) = (GOAWAY, Vec::new());
    while kind != 0 {
        (kind, _, body) = next(&mut client).await;
    }
    assert_eq!(body, b"ok");
    drop((client, inside));
    soon("the gateway to end", stage.served).await.unwrap();
}
