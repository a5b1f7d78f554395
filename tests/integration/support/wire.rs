//! One end of a TCP connection, byte by byte. Every wait has a deadline and fails the test when it passes.

use std::{future::Future, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// TCP, or something above it.
pub trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

pub struct Wire {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

/// A start line and header lines, as they were sent.
pub struct Head {
    pub start: String,
    pub lines: Vec<(String, Vec<u8>)>,
}

/// Waits for something that must happen soon.
pub async fn soon<T>(what: &str, happening: impl Future<Output = T>) -> T {
    timeout(PATIENCE, happening).await.unwrap_or_else(|_| panic!("in vain waited for: {what}"))
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    pub fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), buffer: Vec::new() }
    }

    pub async fn connect(addr: SocketAddr) -> Self {
        Self::new(soon("a connection", TcpStream::connect(addr)).await.unwrap())
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon("the peer to take bytes", async {
            self.stream.write_all(bytes.as_ref()).await.unwrap();
            self.stream.flush().await.unwrap();
        })
        .await;
    }

    /// Sends as much as the peer takes before it closes.
    pub async fn send_while_open(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = soon("the peer to take bytes or close", self.stream.write_all(bytes.as_ref())).await;
    }

    pub async fn head(&mut self) -> Head {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let so_far = String::from_utf8_lossy(&self.buffer).into_owned();
            assert!(self.more().await > 0, "closed before the head was complete: {so_far:?}");
        };
        Head::parse(&self.take(end))
    }

    /// The next `length` bytes.
    pub async fn bytes(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            assert!(self.more().await > 0, "closed after {} of {length} bytes", self.buffer.len());
        }
        self.take(length)
    }

    /// The next chunk of a chunked body; empty for the last one, whose trailers stay to be read.
    pub async fn chunk(&mut self) -> Vec<u8> {
        let size = self.line().await;
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            return Vec::new();
        }
        let mut chunk = self.bytes(size + 2).await;
        chunk.truncate(size);
        chunk
    }

    /// A whole chunked body, joined, and its trailer lines.
    pub async fn chunked(&mut self) -> (Vec<u8>, Vec<String>) {
        let mut body = Vec::new();
        loop {
            let chunk = self.chunk().await;
            if chunk.is_empty() {
                break;
            }
            body.extend(chunk);
        }
        let mut trailers = Vec::new();
        loop {
            let line = self.line().await;
            if line.is_empty() {
                return (body, trailers);
            }
            trailers.push(line);
        }
    }

    /// A line without its end.
    pub async fn line(&mut self) -> String {
        let end = loop {
            if let Some(at) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                break at;
            }
            assert!(self.more().await > 0, "closed in the middle of a line");
        };
        let mut line = self.take(end + 2);
        line.truncate(end);
        String::from_utf8(line).unwrap()
    }

    /// Everything until the peer closes, and whether it closed properly rather than with a reset.
    pub async fn rest(&mut self) -> (Vec<u8>, bool) {
        let ended = soon("the peer to close", self.stream.read_to_end(&mut self.buffer)).await;
        (std::mem::take(&mut self.buffer), ended.is_ok())
    }

    /// Waits until the peer is gone, however, and gives back how long that took.
    pub async fn closed(&mut self) -> Duration {
        let began = std::time::Instant::now();
        let _ = self.rest().await;
        began.elapsed()
    }

    async fn more(&mut self) -> usize {
        soon("more bytes", self.stream.read_buf(&mut self.buffer)).await.unwrap_or(0)
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }
}

impl Head {
    fn parse(bytes: &[u8]) -> Self {
        let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let start = String::from_utf8_lossy(lines.next().unwrap()).into_owned();
        let lines = lines
            .take_while(|line| !line.is_empty())
            .map(|line| {
                let colon = line.iter().position(|byte| *byte == b':').expect("a header line has a colon");
                let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
                (name, line[colon + 1..].trim_ascii().to_vec())
            })
            .collect();
        Self { start, lines }
    }

    /// All values of a field, in order.
    pub fn all(&self, name: &str) -> Vec<String> {
        let lines = self.lines.iter().filter(|(line, _)| line == name);
        lines.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
    }

    /// The value of a field that must be there at most once.
    pub fn one(&self, name: &str) -> Option<String> {
        let mut all = self.all(name);
        assert!(all.len() <= 1, "{name} more than once: {all:?}");
        all.pop()
    }

    pub fn raw(&self, name: &str) -> Option<&[u8]> {
        self.lines.iter().find(|(line, _)| line == name).map(|(_, value)| &value[..])
    }

    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line")
    }
}
