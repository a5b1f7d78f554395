//! A whole gateway with one room, before a shop that remembers who came.

use std::{
    convert::Infallible,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use stanchion::{
    admin::{self, AdminToken},
    admission::{LiveRoom, Rooms},
    clock::SystemClock,
    config::{Origins, RoomConfig},
    gateway::{self, Gate, Gateway, Limits, Proxy},
    queue::{Policy, Schedule},
    room,
    shutdown::Shutdown,
    store::{SharedEngine, in_process::InProcess},
    tokens::{Keyring, SigningKey},
};
use tokio::net::TcpListener;

use super::browser::Browser;
pub use super::eventually::eventually;

pub const ADMIN_TOKEN: &str = "an admin token for tests";

pub struct House {
    /// The public listener, such as `http://127.0.0.1:1234`.
    pub url: String,
    pub room: Arc<LiveRoom>,
    pub keyring: Keyring,
    pub shop: Shop,
    pub rooms: Rooms,
    shutdown: Shutdown,
}

/// What came through to the shop.
#[derive(Clone, Default)]
pub struct Shop {
    heard: Arc<Mutex<Vec<Request<()>>>>,
    mood: Arc<Mutex<ShopMood>>,
}

/// How the shop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShopMood {
    /// Every answer takes so long.
    pub delay: Duration,
    /// And has this status.
    pub status: StatusCode,
    /// How many more visitors it says it can take.
    pub can_take: u32,
}

impl Default for ShopMood {
    fn default() -> Self {
        Self { delay: Duration::ZERO, status: StatusCode::OK, can_take: 1_000 }
    }
}

/// A room for five visitors that forgets nobody within a test, which changes what its story is about.
pub fn config() -> RoomConfig {
    RoomConfig {
        name: "main".parse().unwrap(),
        hosts: Vec::new(),
        paths: vec!["/".to_owned()],
        origins: Origins::at(http::Uri::from_static("http://127.0.0.1:9")),
        policy: Policy {
            capacity: 5,
            rate: 1_000.0,
            burst: 1_000,
            claim_window: Duration::from_mins(1),
            session_ttl: Duration::from_mins(10),
            absent_after: Duration::from_mins(1),
            grace: Duration::from_mins(5),
            settle: Duration::ZERO,
            schedule: Schedule::default(),
        },
        adaptive: None,
        session_cap: Duration::from_hours(1),
        max_parallel: 32,
        queue_token_ttl: Duration::from_hours(24),
        queued_status: 503,
        bypass: Vec::new(),
        cache: Vec::new(),
        message: None,
        beacon: None,
        title: "The sale".to_owned(),
        cookie_domain: None,
    }
}

pub fn in_process() -> SharedEngine {
    Arc::new(InProcess::new(Arc::new(SystemClock)))
}

impl House {
    /// A house on the in-process engine.
    pub async fn open(change: impl FnOnce(&mut RoomConfig)) -> Self {
        let keyring = Keyring::new(SigningKey::random(), Vec::new());
        Self::on(in_process(), keyring, change).await
    }

    pub async fn on(engine: SharedEngine, keyring: Keyring, change: impl FnOnce(&mut RoomConfig)) -> Self {
        Self::built(engine, keyring, true, None, change).await
    }

    /// A house that keeps its notes in `data`, after others with these keys.
    pub async fn after(
        engine: SharedEngine,
        keyring: Keyring,
        data: &Path,
        change: impl FnOnce(&mut RoomConfig),
    ) -> Self {
        Self::built(engine, keyring, false, Some(data), change).await
    }

    async fn built(
        engine: SharedEngine,
        keyring: Keyring,
        keys_are_fresh: bool,
        data: Option<&Path>,
        change: impl FnOnce(&mut RoomConfig),
    ) -> Self {
        let (shop, shutdown) = (Shop::default(), Shutdown::new());
        let mut config = config();
        config.origins = Origins::at(shop.clone().serve(&shutdown).await);
        change(&mut config);
        let limits = Limits::default();
        let proxy = Proxy::new([(config.name.clone(), config.origins.clone())], &limits).unwrap();
        let clock = Arc::new(SystemClock);
        let room = LiveRoom::open(config, engine, clock, keyring.clone(), keys_are_fresh, data).await.unwrap();
        room.start(&shutdown);
        let rooms: Rooms = Arc::new([Arc::clone(&room)]);
        let gate = Gate::new(Arc::clone(&rooms), "/__room");
        let gateway = Gateway::new(gate, proxy, room::router(Arc::clone(&rooms), "/__room"), limits)
            .with_at_once(room::at_once(Arc::clone(&rooms), "/__room"));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(gateway::serve(listener, gateway, shutdown.clone()));
        Self { url, room, keyring, shop, rooms, shutdown }
    }

    pub fn browser(&self) -> Browser {
        Browser::at(&self.url)
    }

    /// The admin API's answer.
    pub async fn admin(&self, method: Method, path: &str, token: Option<&str>, body: &str) -> (StatusCode, String) {
        use tower::ServiceExt as _;
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(axum::body::Body::from(body.to_owned())).unwrap();
        let router = admin::router(Arc::clone(&self.rooms), AdminToken::new(ADMIN_TOKEN), self.shutdown.clone());
        let answer = router.oneshot(request).await.unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// One number or word of the admin API's view of the room.
    pub async fn figure(&self, name: &str) -> serde_json::Value {
        let (_, text) = self.admin(Method::GET, "/api/rooms/main", None, "").await;
        serde_json::from_str::<serde_json::Value>(&text).unwrap()[name].clone()
    }

    pub async fn set_mode(&self, mode: &str) {
        let body = format!("{{\"mode\":\"{mode}\"}}");
        let (status, text) = self.admin(Method::POST, "/api/rooms/main/mode", Some(ADMIN_TOKEN), &body).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        self.until("the mode", mode).await;
    }

    /// Waits until the room's view shows `mode`.
    async fn until(&self, what: &str, mode: &str) {
        eventually(what, async || (self.figure("mode").await == mode).then_some(())).await;
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.shutdown.stop();
    }
}

impl Shop {
    /// The requests that came through, as `METHOD path`.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|head| format!("{} {}", head.method(), head.uri())).collect()
    }

    pub fn mood(&self) -> ShopMood {
        *self.mood.lock().unwrap()
    }

    pub fn set_mood(&self, mood: ShopMood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// What the last request said in a header; empty when nothing.
    pub fn last_header(&self, name: &str) -> String {
        let heard = self.heard.lock().unwrap();
        heard.last().and_then(|head| head.headers().get(name)).map_or(String::new(), |v| v.to_str().unwrap().to_owned())
    }

    async fn serve(self, shutdown: &Shutdown) -> http::Uri {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let shutdown = shutdown.clone();
        tokio::spawn(async move {
            loop {
                let stream = tokio::select! {
                    () = shutdown.stopped() => break,
                    accepted = listener.accept() => accepted.unwrap().0,
                };
                let shop = self.clone();
                let service = service_fn(move |request| {
                    let (answer, delay) = (shop.answer(request), shop.mood().delay);
                    async move {
                        if !delay.is_zero() {
                            tokio::time::sleep(delay).await;
                        }
                        Ok::<_, Infallible>(answer)
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        uri
    }

    /// Paths say what the shop says to the gateway: `/done`, `/pin/60`, `/sold-out`.
    fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, _) = request.into_parts();
        let mood = self.mood();
        let mut answer = Response::builder()
            .status(mood.status)
            .header("set-cookie", "basket=1; Path=/")
            .header("stanchion-capacity", mood.can_take);
        let path = head.uri.path().to_owned();
        if path == "/done" {
            answer = answer.header("stanchion-command", "release");
        } else if path == "/sold-out" {
            answer = answer.header("stanchion-sold-out", "1");
        } else if let Some(seconds) = path.strip_prefix("/pin/") {
            answer = answer.header("stanchion-pin", seconds);
        }
        self.heard.lock().unwrap().push(Request::from_parts(head, ()));
        answer.body(Full::from("the shop")).unwrap()
    }
}
