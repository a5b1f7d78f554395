//! The shared cache from outside: a gate, raw visitors, and a shop in the hands of the test.

mod keeping;
mod keys;
mod stampede;
mod troubles;
mod visitors;

use std::net::SocketAddr;

use stanchion::config::{CacheRule, Origins, RoomConfig};

use crate::support::{
    house::House,
    origin::Origin,
    wire::{Head, Wire},
};

/// A house with room for everybody, before the shop at `origin`, that keeps `/event` for those admitted and `/public` for all.
async fn house(origin: http::Uri) -> House {
    house_with(origin, |_| {}).await
}

async fn house_with(origin: http::Uri, change: impl FnOnce(&mut RoomConfig)) -> House {
    House::open(|config| {
        config.origins = Origins::at(origin);
        config.policy.capacity = 10_000;
        config.cache = vec![
            CacheRule { path_prefix: "/event".to_owned(), for_everyone: false },
            CacheRule { path_prefix: "/public".to_owned(), for_everyone: true },
        ];
        change(config);
    })
    .await
}

fn addr(house: &House) -> SocketAddr {
    house.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// A request with these further lines, each ending in CRLF.
fn get(path: &str, lines: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n{lines}\r\n")
}

async fn ask(house: &House, request: impl AsRef<[u8]>) -> Wire {
    let mut client = Wire::connect(addr(house)).await;
    client.send(request).await;
    client
}

/// The head of the answer and its body, which has a length.
async fn whole(client: &mut Wire) -> (Head, String) {
    let head = client.head().await;
    let length = head.one("content-length").expect("a length").parse().unwrap();
    let body = client.bytes(length).await;
    (head, String::from_utf8(body).unwrap())
}

async fn answer(house: &House, request: impl AsRef<[u8]>) -> (Head, String) {
    whole(&mut ask(house, request).await).await
}

async fn text(house: &House, path: &str, lines: &str) -> String {
    answer(house, get(path, lines)).await.1
}

/// An answer with these further lines.
fn said(lines: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {}\r\n\r\n{body}", body.len())
}

const KEEP: &str = "Cache-Control: max-age=600\r\n";

/// A shop that numbers its answers, which have these further lines.
async fn numbering(lines: &'static str) -> crate::support::origin::Playing {
    Origin::bind().await.by(move |_, number| said(lines, &format!("answer {number}")).into_bytes())
}
