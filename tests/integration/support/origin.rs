//! An origin in the hands of the test: it says exactly the given bytes and shows exactly what it got.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};

use super::wire::{Wire, soon};

/// Accepts connections for the test to play by hand.
pub struct Origin {
    listener: TcpListener,
}

impl Origin {
    pub async fn bind() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub fn addr(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub fn uri(&self) -> http::Uri {
        format!("http://{}", self.addr()).parse().unwrap()
    }

    /// The next connection.
    pub async fn accept(&self) -> Wire {
        Wire::new(soon("a connection to the origin", self.listener.accept()).await.unwrap().0)
    }

    /// Gives every request without a body the same answer, on as many connections as come, and keeps what was asked.
    pub fn always(self, answer: impl Into<Vec<u8>>) -> Playing {
        let answer = answer.into();
        self.by(move |_, _| answer.clone())
    }

    /// Gives every request without a body an answer that follows from its head, in lower case, and its number, from 1 on.
    pub fn by(self, answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static) -> Playing {
        let uri = self.uri();
        let answer = Arc::new(answer);
        let (heard, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (ears, count) = (Arc::clone(&heard), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = self.listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (answer, ears) = (Arc::clone(&answer), Arc::clone(&ears));
                tokio::spawn(async move {
                    let mut buffer = Vec::new();
                    while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
                        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                            let asked: Vec<u8> = buffer.drain(..at + 4).collect();
                            let asked = String::from_utf8_lossy(&asked).to_ascii_lowercase();
                            let number = {
                                let mut ears = ears.lock().unwrap();
                                ears.push(asked.clone());
                                ears.len()
                            };
                            if stream.write_all(&answer(&asked, number)).await.is_err() {
                                return;
                            }
                        }
                    }
                });
            }
        });
        Playing { uri, heard, connections, task }
    }
}

/// An origin that plays by itself until dropped.
pub struct Playing {
    pub uri: http::Uri,
    heard: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Playing {
    /// The heads of all requests so far, in lower case.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.task.abort();
    }
}
