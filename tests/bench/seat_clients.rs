//! Clients that want seats: the same loop over HTTP and over Redis' own protocol, and one through the `redis` crate.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    sync::Barrier,
    task::JoinSet,
    time::timeout,
};

use super::seats::{ATTEMPTS, CLIENTS, SEATS};

/// What the server speaks.
#[derive(Debug, Clone, Copy)]
pub enum Protocol {
    Http,
    Redis,
}

/// Attempts per second over a connection for each client, all of which are open before the first attempt.
pub async fn race(port: u16, protocol: Protocol) -> anyhow::Result<f64> {
    crowd(async move || {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream: BufReader::new(stream), protocol })
    })
    .await
}

/// Attempts per second of `SET NX EX` when all clients share one connection, as the box office's requests do.
pub async fn race_multiplexed(client: &redis::Client) -> anyhow::Result<f64> {
    let shared = client.get_multiplexed_async_connection().await?;
    crowd(async move || Ok(shared.clone())).await
}

/// A way to ask for a seat.
trait Ask: Send + 'static {
    /// Whether the client got it.
    fn ask(&mut self, client: u32, seat: u32) -> impl Future<Output = anyhow::Result<bool>> + Send;
}

async fn crowd<A: Ask>(connect: impl AsyncFn() -> anyhow::Result<A>) -> anyhow::Result<f64> {
    let (next, barrier) = (Arc::new(AtomicU32::new(0)), Arc::new(Barrier::new(CLIENTS as usize + 1)));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let mut connection = connect().await?;
        let (next, barrier) = (Arc::clone(&next), Arc::clone(&barrier));
        clients.spawn(async move {
            barrier.wait().await;
            let mut sold = 0;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= ATTEMPTS {
                    return anyhow::Ok(sold);
                }
                let asked = timeout(Duration::from_secs(30), connection.ask(client, number % SEATS)).await;
                sold += u32::from(asked.context("no answer")??);
            }
        });
    }
    barrier.wait().await;
    let began = Instant::now();
    let mut sold = 0;
    while let Some(client) = clients.join_next().await {
        sold += client??;
    }
    ensure!(sold == SEATS, "{sold} of {SEATS} seats were sold");
    Ok(f64::from(ATTEMPTS) / began.elapsed().as_secs_f64())
}

struct Connection {
    stream: BufReader<TcpStream>,
    protocol: Protocol,
}

impl Ask for Connection {
    async fn ask(&mut self, client: u32, seat: u32) -> anyhow::Result<bool> {
        let name = seat_name(seat);
        let request = match self.protocol {
            Protocol::Http => {
                let body = format!("{{\"seats\":[\"{name}\"]}}");
                format!(
                    "POST /events/demo/holds HTTP/1.1\r\nHost: shop.test\r\nAccept: application/json\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            Protocol::Redis => bare(&["SET", &key(&name), &client.to_string(), "NX", "EX", "120"]),
        };
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        match self.protocol {
            Protocol::Http => self.status().await,
            Protocol::Redis => match self.line().await?.as_str() {
                "+OK" => Ok(true),
                "$-1" => Ok(false),
                other => bail!("Redis said {other}"),
            },
        }
    }
}

impl Connection {
    async fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line).await? > 0, "the connection was closed");
        Ok(line.trim_end().to_owned())
    }

    async fn status(&mut self) -> anyhow::Result<bool> {
        let first = self.line().await?;
        let mut length = 0;
        loop {
            let line = self.line().await?;
            match line.split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse()?,
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        match first.split(' ').nth(1) {
            Some("201") => Ok(true),
            Some("409") => Ok(false),
            _ => bail!("{first}: {}", String::from_utf8_lossy(&body)),
        }
    }
}

impl Ask for redis::aio::MultiplexedConnection {
    async fn ask(&mut self, client: u32, seat: u32) -> anyhow::Result<bool> {
        let mut command = redis::cmd("SET");
        command.arg(key(&seat_name(seat))).arg(client).arg("NX").arg("EX").arg(120);
        Ok(command.query_async::<Option<String>>(self).await?.is_some())
    }
}

/// A command as the protocol writes it.
fn bare(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{}", words.len(), words.concat())
}

/// As long as the box office's own.
fn key(seat: &str) -> String {
    format!("stanchion-box:{{bare}}:seat:{seat}")
}

/// Rows of forty, as in the box office.
fn seat_name(seat: u32) -> String {
    let row = char::from(b'A' + u8::try_from(seat / 40 % 26).unwrap_or(0));
    format!("{row}{}", seat % 40 + 1)
}
