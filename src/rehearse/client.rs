//! A browser tab: one kept-alive connection, the person's cookies, and a deadline on every wait.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpStream, lookup_host},
    sync::Semaphore,
    time::timeout,
};

use super::{
    now_ms,
    personality::{Dice, around},
    plan::RehearseError,
    record::Person,
    tally::{Kind, Tally},
};

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
const LARGEST_ANSWER: usize = 8 << 20;
/// More connections opened at once than a listen backlog takes would only measure the kernel's retries.
const CONNECTING_AT_ONCE: usize = 256;
const TRIES: u32 = 4;

/// The system under rehearsal.
#[derive(Debug)]
pub(super) struct Target {
    address: SocketAddr,
    authority: String,
    connecting: Semaphore,
}

impl Target {
    /// Finds an address of the host that takes connections.
    pub(super) async fn find(url: &Uri) -> Result<Self, RehearseError> {
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let authority = url.authority().map_or_else(String::new, |authority| authority.as_str().to_owned());
        let unreachable = |reason: String| RehearseError::Unreachable { address: authority.clone(), reason };
        let addresses = timeout(CONNECT_DEADLINE, lookup_host((host, url.port_u16().unwrap_or(80))))
            .await
            .map_err(|_| unreachable("the name could not be looked up in time".to_owned()))?
            .map_err(|error| unreachable(error.to_string()))?;
        let mut last = "the name has no address".to_owned();
        for address in addresses {
            match timeout(CONNECT_DEADLINE, TcpStream::connect(address)).await {
                Ok(Ok(_)) => return Ok(Self { address, authority, connecting: Semaphore::new(CONNECTING_AT_ONCE) }),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => "no answer in time".clone_into(&mut last),
            }
        }
        Err(unreachable(last))
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) kind: Kind,
    pub(super) method: Method,
    pub(super) path: String,
    body: Option<Bytes>,
    idempotency_key: Option<String>,
}

impl Ask {
    /// A page, as the address bar asks for it.
    pub(super) fn page(path: &str) -> Self {
        Self::new(Kind::Page, Method::GET, path)
    }

    pub(super) fn get(kind: Kind, path: &str) -> Self {
        Self::new(kind, Method::GET, path)
    }

    pub(super) fn delete(kind: Kind, path: &str) -> Self {
        Self::new(kind, Method::DELETE, path)
    }

    pub(super) fn post(kind: Kind, path: &str, body: Option<&serde_json::Value>) -> Self {
        Self { body: body.map(|body| Bytes::from(body.to_string())), ..Self::new(kind, Method::POST, path) }
    }

    pub(super) fn with_key(self, key: &str) -> Self {
        Self { idempotency_key: Some(key.to_owned()), ..self }
    }

    fn new(kind: Kind, method: Method, path: &str) -> Self {
        Self { kind, method, path: path.to_owned(), body: None, idempotency_key: None }
    }

    /// Whether asking twice does what asking once does.
    fn may_repeat(&self) -> bool {
        self.method != Method::POST || self.idempotency_key.is_some() || self.kind == Kind::Leave
    }

    fn request(&self, target: &Target, cookies: Option<&str>) -> Result<Request<Full<Bytes>>, http::Error> {
        let page = self.kind == Kind::Page;
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(header::HOST, &target.authority)
            .header(
                header::USER_AGENT,
                concat!("Mozilla/5.0 (compatible; stanchion-rehearse/", env!("CARGO_PKG_VERSION"), ")"),
            )
            .header(
                header::ACCEPT,
                if page { "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8" } else { "application/json" },
            )
            .header("sec-fetch-mode", if page { "navigate" } else { "cors" })
            .header("sec-fetch-dest", if page { "document" } else { "empty" })
            .header("sec-fetch-site", if page { "none" } else { "same-origin" });
        if self.method != Method::GET {
            request = request.header(header::ORIGIN, format!("http://{}", target.authority));
        }
        if let Some(cookies) = cookies {
            request = request.header(header::COOKIE, cookies);
        }
        if let Some(key) = &self.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if self.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(self.body.clone().unwrap_or_default()))
    }
}

/// An answer, whatever its status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// When the first attempt was sent (our clock): whatever the request did, it did no earlier.
    pub(super) sent_ms: u64,
}

impl Answer {
    /// The status for people who look into it: with the title where the answer is a problem document (RFC 9457).
    pub(super) fn describe(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Problem {
            title: String,
        }
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => format!("status {} ({:.60})", self.status, problem.title),
            Err(_) => format!("status {}", self.status),
        }
    }

    pub(super) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// No answer, after every attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    Refused,
    Unconnected,
    TimedOut,
    Broken,
    TooLarge,
    Unsendable,
}

impl NoAnswer {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Unconnected => "no connection within 5 s",
            Self::TimedOut => "no answer within 30 s",
            Self::Broken => "connection broken",
            Self::TooLarge => "an answer beyond 8 MiB",
            Self::Unsendable => "an address that cannot be asked for",
        }
    }
}

/// One tab.
#[derive(Debug)]
pub(super) struct Tab {
    target: Arc<Target>,
    tally: Arc<Tally>,
    person: Arc<Mutex<Person>>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Tab {
    pub(super) fn new(target: Arc<Target>, tally: Arc<Tally>, person: Arc<Mutex<Person>>) -> Self {
        Self { target, tally, person, connection: None }
    }

    /// Another tab of the same person, with a connection of its own.
    pub(super) fn beside(&self) -> Self {
        Self::new(Arc::clone(&self.target), Arc::clone(&self.tally), Arc::clone(&self.person))
    }

    pub(super) fn person(&self) -> MutexGuard<'_, Person> {
        self.person.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and reads the whole answer; tries again where the network failed and repeating is harmless.
    pub(super) async fn ask(&mut self, ask: &Ask, dice: &mut Dice) -> Result<Answer, NoAnswer> {
        self.person().note_address(&ask.path);
        let (first_sent_ms, mut attempt) = (now_ms(), 1);
        loop {
            let reused = self.connection.as_ref().is_some_and(|connection| !connection.is_closed());
            match self.attempt(ask, first_sent_ms).await {
                Ok(answer) => return Ok(answer),
                // An idle connection that the server closes just then: every browser quietly asks again.
                Err(NoAnswer::Broken) if reused && ask.may_repeat() => continue,
                Err(error) => {
                    self.tally.network_error(ask.kind, error.describe());
                    let hopeless = matches!(error, NoAnswer::Unsendable | NoAnswer::TooLarge);
                    let unsent = matches!(error, NoAnswer::Refused | NoAnswer::Unconnected);
                    let is_last = hopeless || attempt == TRIES || !(unsent || ask.may_repeat());
                    if is_last || error == NoAnswer::TimedOut {
                        self.tally.unexpected(&format!("{}: {}", ask.kind.name(), error.describe()));
                    }
                    if is_last {
                        return Err(error);
                    }
                }
            }
            tokio::time::sleep(around(dice, Duration::from_millis(250) * 2_u32.pow(attempt))).await;
            attempt += 1;
        }
    }

    async fn attempt(&mut self, ask: &Ask, first_sent_ms: u64) -> Result<Answer, NoAnswer> {
        let cookies = self.person().jar.header(&ask.path, Instant::now());
        let request = ask.request(&self.target, cookies.as_deref()).map_err(|_| NoAnswer::Unsendable)?;
        let started = Instant::now();
        // Taken out, so that a connection with half an answer in it is dropped with an early return.
        let mut connection = match still_open(self.connection.take()).await {
            Some(connection) => connection,
            None => connect(&self.target).await?,
        };
        let exchange = async {
            let (head, body) = connection.send_request(request).await.map_err(|_| NoAnswer::Broken)?.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect().await.map_err(|error| {
                if error.is::<http_body_util::LengthLimitError>() { NoAnswer::TooLarge } else { NoAnswer::Broken }
            })?;
            Ok((head, body.to_bytes()))
        };
        let (head, body) = timeout(ANSWER_DEADLINE, exchange).await.map_err(|_| NoAnswer::TimedOut)??;
        self.connection = Some(connection);
        let status = head.status.as_u16();
        self.tally.answered(ask.kind, status, started.elapsed());
        self.learn(&head.headers, first_sent_ms);
        Ok(Answer { status, headers: head.headers, body, sent_ms: first_sent_ms })
    }

    fn learn(&self, headers: &HeaderMap, sent_ms: u64) {
        let (mut person, received_ms) = (self.person(), now_ms());
        for line in headers.get_all(header::SET_COOKIE) {
            let readable = line.to_str().is_ok_and(|line| person.take_cookie(line, sent_ms, received_ms));
            if !readable {
                self.tally.unexpected("a waiting-room cookie that holds no readable token");
            }
        }
        if let Some(location) = headers.get(header::LOCATION).and_then(|value| value.to_str().ok()) {
            person.note_address(location);
        }
    }
}

async fn still_open(connection: Option<SendRequest<Full<Bytes>>>) -> Option<SendRequest<Full<Bytes>>> {
    let mut connection = connection?;
    timeout(Duration::from_secs(1), connection.ready()).await.is_ok_and(|ready| ready.is_ok()).then_some(connection)
}

async fn connect(target: &Target) -> Result<SendRequest<Full<Bytes>>, NoAnswer> {
    let Ok(_permit) = target.connecting.acquire().await else { return Err(NoAnswer::Unconnected) };
    let stream = timeout(CONNECT_DEADLINE, TcpStream::connect(target.address))
        .await
        .map_err(|_| NoAnswer::Unconnected)?
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::ConnectionRefused => NoAnswer::Refused,
            _ => NoAnswer::Unconnected,
        })?;
    // Only latency would suffer.
    let _ = stream.set_nodelay(true);
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(64 << 10)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| NoAnswer::Broken)?;
    // Ends when the sender is dropped or the server closes.
    tokio::spawn(connection);
    Ok(sender)
}
