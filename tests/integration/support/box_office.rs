//! A box office of the test's own.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

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

use super::{fake_provider::FakeProvider, redis_server::RedisServer};

pub const SECRET: &str = "a secret of the test's own";

/// Where the inventory lives.
pub enum Where {
    InProcess,
    Redis(RedisServer),
}

impl Where {
    pub async fn engine(&self, clock: &SharedClock) -> SharedEngine {
        match self {
            Self::InProcess => Arc::new(InProcess::new(Arc::clone(clock))),
            Self::Redis(server) => Arc::new(RedisEngine::connect(&server.url()).await.unwrap()),
        }
    }
}

pub fn system_clock() -> SharedClock {
    Arc::new(SystemClock)
}

/// What a gateway in front adds to every request.
const VISIT: (&str, &str) = ("stanchion-visitor", "the-first-visit");

pub struct Shop {
    router: Router,
    admin: Router,
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
    /// 80 seats and 10 general-admission tickets, in process, unless `adjust` says otherwise.
    pub async fn open(adjust: impl FnOnce(&mut BoxOfficeConfig)) -> Self {
        Self::open_in(&Where::InProcess, adjust).await
    }

    pub async fn open_in(place: &Where, adjust: impl FnOnce(&mut BoxOfficeConfig)) -> Self {
        let clock: SharedClock = Arc::new(SystemClock);
        Self::open_at(place, clock, adjust).await
    }

    /// On a clock of the test's own, which starts at the present.
    pub async fn open_by_hand() -> (Self, ManualClock) {
        let clock = ManualClock::at(SystemClock.unix_micros());
        (Self::open_at(&Where::InProcess, Arc::new(clock.clone()), |_| {}).await, clock)
    }

    async fn open_at(place: &Where, clock: SharedClock, adjust: impl FnOnce(&mut BoxOfficeConfig)) -> Self {
        let engine = place.engine(&clock).await;
        Self::open_with(engine, clock, adjust).await
    }

    /// On an engine that other box offices may share.
    pub async fn open_on(engine: SharedEngine, adjust: impl FnOnce(&mut BoxOfficeConfig)) -> Self {
        Self::open_with(engine, system_clock(), adjust).await
    }

    async fn open_with(engine: SharedEngine, clock: SharedClock, adjust: impl FnOnce(&mut BoxOfficeConfig)) -> Self {
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
            database: dir.path().join("ledger.db").display().to_string(),
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
        Self { router, admin, provider, config, clock, shutdown, dir }
    }

    /// A box office and the payment sandbox, talking over real sockets.
    pub async fn with_sandbox(behaviour: Behaviour, adjust: impl FnOnce(&mut BoxOfficeConfig)) -> (Self, PaySandbox) {
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
        let shop = Self::open(|config| {
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
        self.node_on(Where::InProcess.engine(&self.clock).await).await
    }

    /// Another box office on the same ledger and provider, with the inventory there.
    pub async fn node_on(&self, engine: SharedEngine) -> Self {
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

    pub fn database(&self) -> PathBuf {
        PathBuf::from(&self.config.database)
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

    /// Orders what is free and gives the order's name and its charge's.
    pub async fn ordered(&self, wish: Value) -> (String, String) {
        let hold = self.held(wish).await;
        let order = self.order(&format!("key-{hold}"), &hold).await.expect(202).field("order");
        let charge = self.provider.charge_of(&order).await;
        (order, charge)
    }

    pub async fn status_of(&self, order: &str) -> String {
        self.get(&format!("/orders/{order}")).await.expect(200).field("status")
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
