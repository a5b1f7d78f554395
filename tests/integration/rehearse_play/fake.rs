//! A waiting room and a shop in one small server that keeps the contract, or breaks it in one chosen way.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::{
    Json, Router,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{delete, get, post},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hyper_util::{rt::TokioExecutor, rt::TokioIo, server::conn::auto, service::TowerToHyperService};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// The one thing that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    DoubleSale,
    LostSale,
    Overtaking,
    OverCapacity,
    OverRate,
    ServerErrors,
    LostPlace,
    PositionRises,
    StatusIsHtml,
    PlacePerReload,
    TokenInLocation,
    SessionsCutShort,
    NobodyIsCalled,
    AnotherShop,
}

pub const CAPACITY: usize = 8;
pub const RATE: f64 = 25.0;
pub const BURST: u32 = 2;
pub const SEATS: usize = 24;
/// Longer than any buyer thinks, on a machine that is not too busy.
const HOLD: Duration = Duration::from_secs(2);

pub struct Fake {
    pub url: String,
    server: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Fake {
    pub async fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(World::new(fault)));
        let router = Router::new()
            .route("/", get(home))
            .route("/events/demo", get(event))
            .route("/events/demo/holds", post(hold))
            .route("/events/demo/audit", get(audit))
            .route("/holds/{hold}", delete(cancel))
            .route("/orders", post(order))
            .route("/orders/{order}", get(order_status))
            .route("/__room/main/status", get(status))
            .route("/__room/main/leave", post(leave))
            .route("/api/rooms/main", get(limits))
            .with_state(shared);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                tokio::spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { url, server }
    }
}

type Shared = Arc<Mutex<World>>;

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Waiting,
    Called { at_ms: u64 },
    Inside { called_ms: u64, admitted_ms: u64 },
    Gone,
}

struct World {
    fault: Fault,
    opens: Instant,
    /// Visitors in order of arrival; the index is name and score.
    visitors: Vec<Place>,
    tokens: f64,
    refilled: Instant,
    answers: u64,
    seats: Vec<&'static str>,
    holds: BTreeMap<String, (Vec<usize>, Instant)>,
    orders: BTreeMap<String, (Vec<usize>, Instant)>,
    keys: BTreeMap<String, String>,
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

impl World {
    fn new(fault: Fault) -> Self {
        Self {
            fault,
            opens: Instant::now() + Duration::from_millis(700),
            visitors: Vec::new(),
            tokens: f64::from(BURST),
            refilled: Instant::now(),
            answers: 0,
            seats: vec!["free"; SEATS],
            holds: BTreeMap::new(),
            orders: BTreeMap::new(),
            keys: BTreeMap::new(),
        }
    }

    fn is_open(&self) -> bool {
        Instant::now() >= self.opens
    }

    fn sold_out(&self) -> bool {
        self.seats.iter().all(|seat| *seat == "sold") && self.fault != Fault::DoubleSale || self.orders.len() >= SEATS
    }

    /// Gives back the seats of holds that ran out.
    fn lapse(&mut self) {
        let now = Instant::now();
        for (_, (seats, _)) in self.holds.extract_if(.., |_, (_, ends)| *ends <= now) {
            for seat in seats {
                self.seats[seat] = "free";
            }
        }
    }

    /// Calls from the line what capacity and order allow.
    fn call(&mut self) {
        let occupied =
            self.visitors.iter().filter(|place| matches!(place, Place::Called { .. } | Place::Inside { .. })).count();
        let capacity = if self.fault == Fault::OverCapacity { CAPACITY + 4 } else { CAPACITY };
        for _ in occupied..capacity {
            let mut waiting =
                self.visitors.iter().enumerate().filter(|(_, place)| **place == Place::Waiting).map(|(at, _)| at);
            let next = match self.fault {
                Fault::NobodyIsCalled => None,
                Fault::Overtaking => waiting.next_back(),
                _ => waiting.next(),
            };
            let Some(next) = next.filter(|_| !self.sold_out()) else { return };
            self.visitors[next] = Place::Called { at_ms: now_ms() };
        }
    }

    /// Lets a called visitor in when the rate allows.
    fn claim(&mut self, visitor: usize) -> bool {
        let Place::Called { at_ms } = self.visitors[visitor] else {
            return matches!(self.visitors[visitor], Place::Inside { .. }) && self.fault != Fault::SessionsCutShort;
        };
        let now = Instant::now();
        self.tokens = (self.tokens + RATE * (now - self.refilled).as_secs_f64()).min(f64::from(BURST));
        self.refilled = now;
        if self.tokens < 1.0 && self.fault != Fault::OverRate {
            return false;
        }
        self.tokens -= 1.0;
        self.visitors[visitor] = Place::Inside { called_ms: at_ms, admitted_ms: now_ms() };
        true
    }

    fn session(&self, headers: &HeaderMap) -> Option<usize> {
        let visitor = visitor(headers, "stanchion_s_main")?;
        let Place::Inside { admitted_ms, .. } = self.visitors[visitor] else { return None };
        let cut = self.fault == Fault::SessionsCutShort && now_ms() > admitted_ms + 200;
        (!cut).then_some(visitor)
    }

    /// Steps 2 to 5 of a request: a session goes on, a called visitor gets in, anyone else waits.
    #[expect(clippy::result_large_err, reason = "an answer either way")]
    fn gate(&mut self, headers: &HeaderMap) -> Result<Vec<String>, Response> {
        self.answers += 1;
        self.lapse();
        if self.session(headers).is_some() {
            return Ok(Vec::new());
        }
        if !self.is_open() {
            return Err(queued(headers, Vec::new()));
        }
        let known = visitor(headers, "stanchion_q_main").filter(|_| self.fault != Fault::PlacePerReload);
        let at = known.unwrap_or_else(|| {
            self.visitors.push(Place::Waiting);
            self.visitors.len() - 1
        });
        self.call();
        let mut cookies = vec![self.cookie("queue", at)];
        if self.claim(at) {
            cookies.push(self.cookie("session", at));
            return Ok(cookies);
        }
        Err(queued(headers, cookies))
    }

    fn cookie(&self, kind: &str, visitor: usize) -> String {
        format!("stanchion_{}_main={}; Path=/; HttpOnly", &kind[..1], self.token(kind, visitor))
    }

    fn token(&self, kind: &str, visitor: usize) -> String {
        let (called, admitted) = match self.visitors[visitor] {
            Place::Inside { called_ms, admitted_ms } => (Some(called_ms), Some(admitted_ms)),
            _ => (None, None),
        };
        let now = now_ms() / 1_000;
        let claims = json!({
            "typ": kind, "room": "main", "sub": format!("visitor-{visitor}"), "score": visitor, "iat": now,
            "exp": now + 600, "epoch": 1, "called_ms": called, "admitted_ms": admitted,
        });
        format!("eyJhbGciOiJub25lIn0.{}.c2lnbmF0dXJl", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }
}

/// The visitor a cookie's token names.
fn visitor(headers: &HeaderMap, cookie: &str) -> Option<usize> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    let token = cookies.split("; ").find_map(|pair| pair.strip_prefix(cookie)?.strip_prefix('='))?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?).ok()?;
    usize::try_from(claims["score"].as_u64()?).ok()
}

fn with_cookies(mut response: Response, cookies: Vec<String>) -> Response {
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie.parse().unwrap());
    }
    response
}

fn queued(headers: &HeaderMap, cookies: Vec<String>) -> Response {
    let is_page = headers[header::ACCEPT].to_str().unwrap().starts_with("text/html");
    let body = if is_page { "<h1>wait</h1>" } else { r#"{"room":"main","state":"waiting","next_poll_ms":150}"# };
    let head = [(header::RETRY_AFTER, "1"), (header::CACHE_CONTROL, "no-store")];
    with_cookies((StatusCode::SERVICE_UNAVAILABLE, head, body).into_response(), cookies)
}

async fn home(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    match shared.lock().unwrap().gate(&headers) {
        Ok(cookies) => {
            with_cookies((StatusCode::SEE_OTHER, [(header::LOCATION, "/events/demo")]).into_response(), cookies)
        }
        Err(queued) => queued,
    }
}

async fn event(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let mut world = shared.lock().unwrap();
    let cookies = match world.gate(&headers) {
        Ok(cookies) => cookies,
        Err(queued) => return queued,
    };
    if world.fault == Fault::ServerErrors && world.answers % 9 == 0 {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    if headers[header::ACCEPT].to_str().unwrap().starts_with("text/html") || world.fault == Fault::AnotherShop {
        return with_cookies(
            ([(header::CONTENT_TYPE, "text/html")], Body::from("<h1>shop</h1>")).into_response(),
            cookies,
        );
    }
    let map: Vec<Value> =
        world.seats.iter().enumerate().map(|(at, state)| json!({ "seat": format!("A{at}"), "state": state })).collect();
    let view = json!({
        "id": "demo", "name": "Demo", "on_sale": !world.sold_out(), "currency": "EUR", "price_minor": 4500,
        "seats": { "total": SEATS, "free": 0, "map": map }, "general_admission": { "total": 0, "free": 0 },
    });
    with_cookies(Json(view).into_response(), cookies)
}

async fn hold(State(shared): State<Shared>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let mut world = shared.lock().unwrap();
    if let Err(queued) = world.gate(&headers) {
        return queued;
    }
    let names = body["seats"].as_array().unwrap();
    let seats: Vec<usize> = names.iter().map(|seat| seat.as_str().unwrap()[1..].parse().unwrap()).collect();
    if world.fault != Fault::DoubleSale && seats.iter().any(|seat| world.seats[*seat] != "free") {
        return (StatusCode::CONFLICT, Json(json!({ "taken": names }))).into_response();
    }
    for seat in &seats {
        // The faulty map keeps offering every second seat.
        world.seats[*seat] = if world.fault == Fault::DoubleSale && seat % 2 == 0 { "free" } else { "held" };
    }
    let id = format!("h_{}", world.answers);
    let quantity = seats.len();
    world.holds.insert(id.clone(), (seats, Instant::now() + HOLD));
    (StatusCode::CREATED, Json(json!({ "hold": id, "seats": names, "quantity": quantity, "expires_in_seconds": 2 })))
        .into_response()
}

async fn cancel(State(shared): State<Shared>, headers: HeaderMap, Path(hold): Path<String>) -> Response {
    let mut world = shared.lock().unwrap();
    if let Err(queued) = world.gate(&headers) {
        return queued;
    }
    let Some((seats, _)) = world.holds.remove(&hold) else { return StatusCode::NOT_FOUND.into_response() };
    for seat in seats {
        world.seats[seat] = "free";
    }
    StatusCode::NO_CONTENT.into_response()
}

fn order_document(world: &World, id: &str) -> (Value, bool) {
    let (seats, settles) = &world.orders[id];
    let settled = Instant::now() >= *settles;
    let names: Vec<String> = seats.iter().map(|seat| format!("A{seat}")).collect();
    let status = if settled { "confirmed" } else { "pending" };
    (json!({ "order": id, "status": status, "seats": names, "quantity": seats.len(), "amount_minor": 4500 }), settled)
}

async fn order(State(shared): State<Shared>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let mut world = shared.lock().unwrap();
    if let Err(queued) = world.gate(&headers) {
        return queued;
    }
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    if !world.keys.contains_key(&key) {
        let Some((seats, _)) = world.holds.remove(body["hold"].as_str().unwrap()) else {
            return StatusCode::GONE.into_response();
        };
        if world.fault != Fault::DoubleSale {
            for seat in &seats {
                world.seats[*seat] = "sold";
            }
        }
        let id = format!("o_{}", world.orders.len());
        world.orders.insert(id.clone(), (seats, Instant::now() + Duration::from_millis(100)));
        world.keys.insert(key.clone(), id);
    }
    (StatusCode::ACCEPTED, Json(order_document(&world, &world.keys[&key]).0)).into_response()
}

async fn order_status(State(shared): State<Shared>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    let mut world = shared.lock().unwrap();
    if let Err(queued) = world.gate(&headers) {
        return queued;
    }
    let (document, settled) = order_document(&world, &id);
    let mut cookies = Vec::new();
    if settled && let Some(visitor) = world.session(&headers) {
        world.visitors[visitor] = Place::Gone;
        cookies.push("stanchion_s_main=; Path=/; Max-Age=0".to_owned());
    }
    with_cookies(Json(document).into_response(), cookies)
}

async fn status(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let mut world = shared.lock().unwrap();
    world.answers += 1;
    if world.fault == Fault::StatusIsHtml && world.answers % 9 == 0 {
        return "<h1>oops</h1>".into_response();
    }
    let answer = |state: &str, position: Option<u64>, location: Option<&str>| json!({ "room": "main", "state": state, "position": position, "next_poll_ms": 150, "location": location });
    if !world.is_open() {
        return Json(answer("scheduled", None, None)).into_response();
    }
    if world.session(&headers).is_some() {
        return Json(answer("admitted", None, Some("/"))).into_response();
    }
    let Some(visitor) = visitor(&headers, "stanchion_q_main") else {
        return Json(answer("not_queued", None, None)).into_response();
    };
    let forgotten = world.fault == Fault::LostPlace && (14..18).contains(&visitor);
    if forgotten || world.visitors[visitor] == Place::Gone {
        return Json(answer("expired", None, None)).into_response();
    }
    world.call();
    if world.claim(visitor) {
        let cookie = world.cookie("session", visitor);
        let mut location = "/".to_owned();
        if world.fault == Fault::TokenInLocation {
            location = format!("/?session={}", world.token("session", visitor));
        }
        return with_cookies(Json(answer("admitted", None, Some(&location))).into_response(), vec![cookie]);
    }
    if world.sold_out() {
        return Json(answer("sold_out", None, None)).into_response();
    }
    let ahead = world.visitors[..visitor].iter().filter(|place| **place == Place::Waiting).count() as u64;
    let wobble = if world.fault == Fault::PositionRises { world.answers % 3 } else { 0 };
    Json(answer("waiting", Some(ahead + 1 + wobble), None)).into_response()
}

async fn leave(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let mut world = shared.lock().unwrap();
    for cookie in ["stanchion_s_main", "stanchion_q_main"] {
        if let Some(visitor) = visitor(&headers, cookie) {
            world.visitors[visitor] = Place::Gone;
        }
    }
    let gone = ["stanchion_s_main=; Path=/; Max-Age=0", "stanchion_q_main=; Path=/; Max-Age=0"];
    with_cookies(StatusCode::NO_CONTENT.into_response(), gone.map(str::to_owned).to_vec())
}

async fn limits() -> Json<Value> {
    Json(json!({ "room": "main", "mode": "open", "capacity": CAPACITY, "rate": RATE, "burst": BURST, "line": 0 }))
}

async fn audit(State(shared): State<Shared>) -> Json<Value> {
    let world = shared.lock().unwrap();
    let count = |wanted: &str| world.seats.iter().filter(|seat| **seat == wanted).count();
    let (mut free, held, mut sold) = (count("free"), count("held"), count("sold"));
    if world.fault == Fault::LostSale && sold > 0 {
        (free, sold) = (free + 1, sold - 1);
    }
    // The audit of a faulty shop lies: the buyers must notice.
    Json(json!({
        "total": SEATS, "free": free, "held": held, "sold": sold, "tickets_confirmed": sold, "orders": { "confirmed": world.orders.len() },
        "captures": world.orders.len(), "refunds": 0,
        "g7_one_seat_one_buyer": true, "g8_conservation": true, "g9_money": true,
    }))
}
