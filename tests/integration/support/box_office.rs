//! A box office of the test's own.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
};
use http::{HeaderMap, Request, StatusCode};
use ring::hmac;
use serde_json::{Value, json};
use stanchion::{
    box_office::{BoxOffice, BoxOfficeConfig, EventConfig, ProviderConfig, audit::Audit},
    clock::{Clock as _, ManualClock, SharedClock, SystemClock},
    config::Secret,
    listener,
    pay_sandbox::{Behaviour, PaySandbox, PaySandboxConfig},
    shutdown::Shutdown,
    store::{SharedEngine, in_process::InProcess, redis_engine::RedisEngine},
};
use tower::ServiceExt as _;

pub use super::eventually::eventually;

use super::{fake_provider::FakeProvider, postgres::PostgresServer, redis_server::RedisServer};

pub const SECRET: &str = "a secret of the test's own";

/// Where the inventory and the ledgers live: in process and in a file, unless there are servers for them.
#[derive(Default)]
pub struct Place {
    redis: Option<RedisServer>,
    postgres: Option<PostgresServer>,
    ledgers: AtomicU32,
}

impl Place {
    pub fn embedded() -> Self {
        Self::default()
    }

    pub fn on_redis() -> Self {
        Self { redis: Some(RedisServer::start()), ..Self::default() }
    }

    pub fn on_postgres() -> Self {
        Self { postgres: Some(PostgresServer::start()), ..Self::default() }
    }

    pub fn on_servers() -> Self {
        Self { postgres: Some(PostgresServer::start()), ..Self::on_redis() }
    }

    /// Whether nothing can be shared by two box offices.
    pub fn is_embedded(&self) -> bool {
        self.redis.is_none()
    }

    pub fn redis(&self) -> &RedisServer {
        self.redis.as_ref().unwrap()
    }

    pub fn redis_mut(&mut self) -> &mut RedisServer {
        self.redis.as_mut().unwrap()
    }

    pub fn ledger_server(&self) -> &PostgresServer {
        self.postgres.as_ref().unwrap()
    }

    pub fn postgres(&mut self) -> &mut PostgresServer {
        self.postgres.as_mut().unwrap()
    }

    pub async fn engine(&self, clock: &SharedClock) -> SharedEngine {
        match &self.redis {
            None => Arc::new(InProcess::new(Arc::clone(clock))),
            Some(server) => Arc::new(RedisEngine::connect(&server.url()).await.unwrap()),
        }
    }

    /// The address of a ledger that is not there yet.
    fn ledger(&self, dir: &Path) -> Secret {
        let number = self.ledgers.fetch_add(1, Ordering::Relaxed);
        match &self.postgres {
            None => dir.join("ledger.db").display().to_string().into(),
            Some(server) => server.database(&format!("ledger_{number}")).into(),
        }
    }
}

/// Runs each story on both databases. It is given a [`Place`].
macro_rules! on_both_databases {
    ($($name:ident)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name($crate::support::box_office::Place::embedded()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name($crate::support::box_office::Place::on_postgres()).await;
            })*
        }
    };
}
pub(crate) use on_both_databases;

/// What a gateway in front adds to every request.
const VISIT: (&str, &str) = ("stanchion-visitor", "the-first-visit");

pub struct Shop {
    router: Router,
    admin: Router,
    pub office: BoxOffice,
    pub provider: FakeProvider,
    pub config: BoxOfficeConfig,
    pub clock: SharedClock,
    pub shutdown: Shutdown,
    dir: Arc<tempfile::TempDir>,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Reply {
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    /// The last part of a problem's type.
    pub fn problem(&self) -> &str {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{}", self.text);
        assert_eq!(self.body["status"], self.status.as_u16());
        assert!(!self.body["title"].as_str().unwrap().is_empty() && !self.body["detail"].as_str().unwrap().is_empty());
        self.body["type"].as_str().unwrap().strip_prefix("urn:stanchion:problem:").unwrap()
    }

    pub fn field(&self, name: &str) -> String {
        self.body[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", self.text)).to_owned()
    }
}

impl Shop {
    /// 80 seats and 10 general-admission tickets, unless `adjust` says otherwise.
    pub async fn open(place: &Place, adjust: impl FnOnce(&mut BoxOfficeConfig)) -> Self {
        Self::open_at(place, Arc::new(SystemClock), adjust).await
    }

    /// On a clock of the test's own, which starts at the present.
    pub async fn open_by_hand(place: &Place) -> (Self, ManualClock) {
        Self::open_by_hand_with(place, |_| {}).await
    }

    pub async fn open_by_hand_with(place: &Place, adjust: impl FnOnce(&mut BoxOfficeConfig)) -> (Self, ManualClock) {
        let clock = ManualClock::at(SystemClock.unix_micros());
        (Self::open_at(place, Arc::new(clock.clone()), adjust).await, clock)
    }

    async fn open_at(place: &Place, clock: SharedClock, adjust: impl FnOnce(&mut BoxOfficeConfig)) -> Self {
        let engine = place.engine(&clock).await;
        Self::open_on(place, engine, clock, adjust).await
    }

    /// With the inventory in an engine that others may share.
    pub async fn open_on(
        place: &Place,
        engine: SharedEngine,
        clock: SharedClock,
        adjust: impl FnOnce(&mut BoxOfficeConfig),
    ) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let provider = FakeProvider::start(&Shutdown::new()).await;
        let mut config = BoxOfficeConfig {
            event: EventConfig {
                id: "demo".to_owned(),
                name: "Demo night".to_owned(),
                currency: "EUR".to_owned(),
                price_minor: 4500,
                seats: 80,
                general_admission: 10,
                per_hold_limit: 10,
            },
            hold_ttl: Duration::from_mins(10),
            database: place.ledger(dir.path()),
            database_connections: None,
            provider: ProviderConfig {
                webhook_secrets: vec![Secret::from(SECRET)],
                timeout: Duration::from_millis(500),
                ..ProviderConfig::new(provider.url.clone(), Secret::from("the-key"))
            },
        };
        adjust(&mut config);
        Self::with(config, engine, clock, provider, dir).await
    }

    async fn with(
        config: BoxOfficeConfig,
        engine: SharedEngine,
        clock: SharedClock,
        provider: FakeProvider,
        dir: Arc<tempfile::TempDir>,
    ) -> Self {
        let office = BoxOffice::open(config.clone(), engine, Arc::clone(&clock)).await.unwrap();
        let shutdown = Shutdown::new();
        office.start(&shutdown);
        let (router, admin) = (office.router(), office.admin_router());
        Self { router, admin, office, provider, config, clock, shutdown, dir }
    }

    /// A box office and the payment sandbox, talking over real sockets.
    pub async fn with_sandbox(
        place: &Place,
        behaviour: Behaviour,
        adjust: impl FnOnce(&mut BoxOfficeConfig),
    ) -> (Self, PaySandbox) {
        let shutdown = Shutdown::new();
        let any = "127.0.0.1:0".parse().unwrap();
        let (shop_socket, pay_socket) = (listener::bind(any).await.unwrap(), listener::bind(any).await.unwrap());
        let sandbox = PaySandbox::open(PaySandboxConfig {
            api_key: "the-key".into(),
            webhook_url: format!("http://{}/webhooks/payments", shop_socket.local_addr().unwrap()),
            webhook_secret: SECRET.into(),
            behaviour,
            journal: None,
        })
        .unwrap();
        let url = format!("http://{}", pay_socket.local_addr().unwrap());
        let shop = Self::open(place, |config| {
            config.provider.url = url;
            adjust(config);
        })
        .await;
        sandbox.start(&shop.shutdown);
        shutdown.spawn(listener::serve(pay_socket, sandbox.router(), shop.shutdown.clone()));
        shutdown.spawn(listener::serve(shop_socket, shop.router.clone(), shop.shutdown.clone()));
        (shop, sandbox)
    }

    /// Another box office on the same ledger and provider, with an inventory of its own.
    pub async fn twin(&self) -> Self {
        self.twin_at(&Place::embedded()).await
    }

    /// Another box office on the same ledger and provider, with the inventory of that place.
    pub async fn twin_at(&self, place: &Place) -> Self {
        self.twin_on(place.engine(&self.clock).await).await
    }

    /// Another box office on the same ledger and provider, with the inventory in that engine.
    pub async fn twin_on(&self, engine: SharedEngine) -> Self {
        Self::with(self.config.clone(), engine, Arc::clone(&self.clock), self.provider.clone(), Arc::clone(&self.dir))
            .await
    }

    /// Serves what buyers and the provider reach on a free port.
    pub async fn listen(&self) -> SocketAddr {
        let socket = listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = socket.local_addr().unwrap();
        self.shutdown.spawn(listener::serve(socket, self.router.clone(), self.shutdown.clone()));
        address
    }

    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Reply {
        ask(&self.router, method, path, &[headers, &[VISIT]].concat(), body.into()).await
    }

    /// As somebody whom no gateway vouches for.
    pub async fn get_as_stranger(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        ask(&self.router, "GET", path, headers, "".into()).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        self.send("POST", path, &headers, body.to_string()).await
    }

    pub async fn hold(&self, wish: Value) -> Reply {
        self.post("/events/demo/holds", &[], &wish).await
    }

    /// Under a key, in a visit of that name or where no gateway vouches for anybody.
    pub async fn hold_in(&self, visit: Option<&str>, key: &str, wish: Value) -> Reply {
        let mut headers = vec![("idempotency-key", key), ("content-type", "application/json")];
        headers.extend(visit.map(|visit| ("stanchion-visitor", visit)));
        ask(&self.router, "POST", "/events/demo/holds", &headers, wish.to_string().into()).await
    }

    pub async fn hold_seats(&self, seats: &[&str]) -> Reply {
        self.hold(json!({ "seats": seats })).await
    }

    /// Holds what must be free, and gives the hold's name.
    #[track_caller]
    pub fn held(&self, wish: Value) -> impl Future<Output = String> + '_ {
        let caller = std::panic::Location::caller();
        async move {
            let reply = self.hold(wish).await;
            assert_eq!(reply.status, 201, "{} at {caller}", reply.text);
            reply.field("hold")
        }
    }

    pub async fn cancel(&self, hold: &str) -> Reply {
        self.send("DELETE", &format!("/holds/{hold}"), &[], "").await
    }

    pub async fn order(&self, key: &str, hold: &str) -> Reply {
        self.post("/orders", &[("idempotency-key", key)], &json!({ "hold": hold })).await
    }

    /// In a visit of that name, or where no gateway vouches for anybody.
    pub async fn order_in(&self, visit: Option<&str>, key: &str, hold: &str) -> Reply {
        let mut headers = vec![("idempotency-key", key), ("content-type", "application/json")];
        headers.extend(visit.map(|visit| ("stanchion-visitor", visit)));
        ask(&self.router, "POST", "/orders", &headers, json!({ "hold": hold }).to_string().into()).await
    }

    /// Orders what is free and gives the order's name and its charge's.
    pub async fn ordered(&self, wish: Value) -> (String, String) {
        let hold = self.held(wish).await;
        let order = self.order(&format!("key-{hold}"), &hold).await.expect(202).field("order");
        let charge = self.provider.charge_of(&order).await;
        (order, charge)
    }

    pub async fn get_order(&self, order: &str) -> Reply {
        self.get(&format!("/orders/{order}")).await
    }

    pub async fn status_of(&self, order: &str) -> String {
        self.get_order(order).await.expect(200).field("status")
    }

    pub async fn becomes(&self, order: &str, status: &str) {
        eventually(&format!("the order is {status}"), || async {
            (self.status_of(order).await == status).then_some(())
        })
        .await;
    }

    /// Sends a webhook signed now.
    pub async fn webhook(&self, event: &Value) -> Reply {
        let time = self.clock.unix_seconds();
        let body = event.to_string();
        self.signed(&format!("t={time},v1={}", sign(time, &body)), &body).await
    }

    pub async fn signed(&self, signature: &str, body: &str) -> Reply {
        self.send("POST", "/webhooks/payments", &[("stanchion-pay-signature", signature)], body.to_owned()).await
    }

    pub async fn audit(&self) -> Audit {
        let reply = ask(&self.admin, "GET", "/events/demo/audit", &[], Body::empty()).await.expect(200);
        serde_json::from_value(reply.body).unwrap()
    }

    pub async fn admin_get(&self, path: &str) -> Reply {
        ask(&self.admin, "GET", path, &[], Body::empty()).await
    }

    /// The audit, once `fits` says so; every guarantee holds each time it is looked at.
    pub async fn audit_when(&self, what: &str, fits: impl Fn(&Audit) -> bool) -> Audit {
        eventually(what, || async {
            let audit = self.audit().await;
            assert!(audit.g7_one_seat_one_buyer && audit.g8_conservation && audit.g9_money, "{audit:?}");
            fits(&audit).then_some(audit)
        })
        .await
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.shutdown.stop();
    }
}

/// The seats of the plan in their order, from 0.
pub fn seat_at(index: usize) -> String {
    format!("{}{}", char::from(b"ABCDEFGH"[index / 40]), index % 40 + 1)
}

/// A webhook about a charge of 4500 cents.
pub fn event(id: &str, kind: &str, order: &str, charge: &str) -> Value {
    json!({
        "id": id, "type": kind, "charge": charge, "order": order,
        "amount_minor": 4500, "currency": "EUR", "created": 1_700_000_000,
    })
}

pub fn sign(time: u64, body: &str) -> String {
    sign_with(SECRET, time, body)
}

pub fn sign_with(secret: &str, time: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{time}.{body}").as_bytes());
    tag.as_ref().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

pub async fn ask(router: &Router, method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Reply {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let text = String::from_utf8_lossy(&to_bytes(body, usize::MAX).await.unwrap()).into_owned();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Reply { status: parts.status, headers: parts.headers, text, body }
}
