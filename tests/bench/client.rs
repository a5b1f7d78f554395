//! A small HTTP client that sends at a fixed rate, whatever the answers take.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

use super::figures;

/// One keep-alive connection.
#[derive(Debug)]
pub struct Client(BufReader<TcpStream>);

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Client {
    pub fn connect(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a whole request without a body and reads the answer.
    pub fn ask(&mut self, request: &str) -> anyhow::Result<Answer> {
        self.0.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("no answer but {line:?}"))?;
        let mut length = 0;
        loop {
            line.clear();
            if self.0.read_line(&mut line)? == 0 {
                bail!("the answer broke off");
            }
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse()?,
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Answer { status, body })
    }
}

/// The request of a poll.
pub fn poll(cookie: &str) -> String {
    format!("GET /__room/main/status HTTP/1.1\r\nHost: shop.test\r\nCookie: {cookie}\r\n\r\n")
}

/// Polls `port` with `cookies` in turn, `per_second` a second, evenly, for `time`. Returns how long each took, counted from
/// when it was due, so that a stall counts for all that it delays.
pub fn poll_at_rate(port: u16, cookies: &[String], per_second: f64, time: Duration) -> anyhow::Result<Vec<Duration>> {
    const LANES: u32 = 8;
    let start = Instant::now() + Duration::from_millis(50);
    let count = figures::count(per_second * time.as_secs_f64());
    let lane = |lane: u32| {
        let mut client = Client::connect(port)?;
        let mut took = Vec::new();
        for index in (lane..count).step_by(LANES as usize) {
            let due = start + Duration::from_secs_f64(f64::from(index) / per_second);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let cookie = cookies.get(index as usize % cookies.len()).context("no cookies")?;
            let answer = client.ask(&poll(cookie))?;
            if answer.status != 200 || !answer.body.windows(17).any(|part| part == br#""state":"waiting""#) {
                bail!("status {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
            }
            took.push(due.elapsed());
        }
        Ok(took)
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|index| scope.spawn(move || lane(index))).collect();
        let mut all = Vec::new();
        for lane in lanes {
            all.extend(lane.join().map_err(|_| anyhow::anyhow!("a lane panicked"))??);
        }
        Ok(all)
    })
}
