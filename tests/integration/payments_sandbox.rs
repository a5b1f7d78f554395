//! The payment provider from outside: over real sockets, as the box office meets it.

mod misbehaviour;

use std::{
    collections::VecDeque,
    io::Write as _,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, extract::State, routing::post};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
    service::TowerToHyperService,
};
use serde_json::{Value, json};
use stanchion::{
    pay_sandbox::{Behaviour, OpenError, PaySandbox, PaySandboxConfig, Spread},
    shutdown::Shutdown,
};
use tokio::{
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout},
};

const API_KEY: &str = "sk_test";
const WEBHOOK_SECRET: &str = "whsec_of_this_test";
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_charge_is_captured_and_reported_by_a_signed_webhook() {
    let mut receiver = Receiver::start().await;
    let provider =
        Provider::start(&receiver, |config| config.behaviour.latency = Spread::of(Duration::from_millis(30))).await;

    let (status, charge) = provider.charge("k1", "o_1", 9000).await;

    assert_eq!(status, StatusCode::ACCEPTED);
    let id = charge["charge"].as_str().unwrap().to_owned();
    assert!(id.starts_with("ch_"));
    assert_eq!((&charge["order"], &charge["status"]), (&json!("o_1"), &json!("pending")));
    assert_eq!((&charge["amount_minor"], &charge["currency"]), (&json!(9000), &json!("EUR")));

    let event = receiver.next().await;
    assert_eq!(event["type"], "charge.captured");
    assert!(event["id"].as_str().unwrap().starts_with("evt_"));
    assert_eq!((&event["charge"], &event["order"]), (&json!(id), &json!("o_1")));
    assert_eq!((&event["amount_minor"], &event["currency"]), (&json!(9000), &json!("EUR")));
    assert!(event["created"].as_u64().unwrap() > 1_700_000_000);

    let (status, charge) = provider.get(&format!("/charges/{id}")).await;
    assert_eq!((status, &charge["status"]), (StatusCode::OK, &json!("captured")));
    let (_, found) = provider.get("/charges?order=o_1").await;
    assert_eq!(found, json!({ "charges": [charge] }));
    assert_eq!(provider.get("/charges?order=o_2").await.1, json!({ "charges": [] }));
    assert_eq!(
        provider.get("/summary").await.1,
        json!({"pending":0,"captures":1,"captured_minor":9000,"declines":0,"refunds":0,"refunded_minor":0})
    );
}

#[tokio::test]
async fn one_key_makes_one_charge_however_often_and_parallel_it_is_sent() {
    let mut receiver = Receiver::start().await;
    let provider = Arc::new(Provider::start(&receiver, |_| {}).await);

    let mut calls = JoinSet::new();
    for _ in 0..16 {
        let provider = Arc::clone(&provider);
        calls.spawn(async move { provider.charge("k1", "o_1", 9000).await });
    }
    let answers = calls.join_all().await;

    assert!(answers.iter().all(|(status, _)| *status == StatusCode::ACCEPTED));
    assert!(answers.iter().all(|(_, charge)| charge["charge"] == answers[0].1["charge"]));
    receiver.next().await;
    let (_, replay) = provider.charge("k1", "o_1", 9000).await;
    assert_eq!((&replay["charge"], &replay["status"]), (&answers[0].1["charge"], &json!("captured")));
    for (order, amount) in [("o_2", 9000), ("o_1", 9001)] {
        assert_eq!(provider.charge("k1", order, amount).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let id = replay["charge"].as_str().unwrap();
    assert_eq!(provider.refund("k1", id, 9000).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(provider.get("/summary").await.1["captures"], 1);
}

#[tokio::test]
async fn declines_are_reported_and_hit_the_same_orders_on_every_run() {
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let mut receiver = Receiver::start().await;
        let provider = Provider::start(&receiver, |config| config.behaviour.decline_ratio = 0.5).await;
        let mut declined = Vec::new();
        for n in 0..24 {
            provider.charge(&format!("k{n}"), &format!("o_{n}"), 100).await;
        }
        for _ in 0..24 {
            let event = receiver.next().await;
            match event["type"].as_str() {
                Some("charge.declined") => declined.push(event["order"].as_str().unwrap().to_owned()),
                other => assert_eq!(other, Some("charge.captured")),
            }
        }
        declined.sort();
        let (_, summary) = provider.get("/summary").await;
        assert_eq!(summary["declines"], declined.len());
        assert_eq!(summary["captured_minor"], 100 * (24 - declined.len()));
        let (_, found) = provider.get(&format!("/charges?order={}", declined[0])).await;
        assert_eq!(found["charges"][0]["status"], "declined");
        outcomes.push(declined);
    }
    assert_eq!(outcomes[0], outcomes[1]);
    assert!((1..24).contains(&outcomes[0].len()));
}

#[tokio::test]
async fn a_webhook_is_sent_again_until_it_is_taken() {
    let mut receiver = Receiver::start().await;
    receiver.answer_next(&[StatusCode::INTERNAL_SERVER_ERROR, StatusCode::FOUND]);
    let provider = Provider::start(&receiver, |_| {}).await;

    provider.charge("k1", "o_1", 100).await;
    let tries = [receiver.next().await, receiver.next().await, receiver.next().await];
    assert!(tries.iter().all(|event| *event == tries[0]), "{tries:?}");
}

#[tokio::test]
async fn a_webhook_that_was_taken_is_not_sent_again() {
    let mut receiver = Receiver::start().await;
    let provider = Provider::start(&receiver, |_| {}).await;
    provider.charge("k1", "o_1", 100).await;
    receiver.next().await;

    // A second try comes at most 375 ms after the first, a third at least 375 ms after it: a second try of the first
    // event would come among the three of the second event.
    receiver.answer_next(&[StatusCode::SERVICE_UNAVAILABLE; 2]);
    provider.charge("k2", "o_2", 100).await;
    for _ in 0..3 {
        assert_eq!(receiver.next().await["order"], "o_2");
    }
}

#[tokio::test]
async fn a_restart_forgets_nothing_and_resumes_what_was_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("data/payments.jsonl");
    let mut receiver = Receiver::start().await;
    let with_journal = |config: &mut PaySandboxConfig| config.journal = Some(journal.clone());

    // Stopped before anything was decided, in the middle of writing a line.
    let provider = Provider::open(&receiver, with_journal).await;
    let (_, charge) = provider.charge("k1", "o_1", 9000).await;
    provider.stop().await;
    append(&journal, r#"{"entry":"charge","id":"ch_torn","key":"k"#);

    // Decided, but the report is not taken.
    receiver.answer_next(&[StatusCode::SERVICE_UNAVAILABLE; 100]);
    let provider = Provider::start(&receiver, with_journal).await;
    let refused = receiver.next().await;
    assert_eq!(refused["charge"], charge["charge"]);
    provider.stop().await;
    receiver.answer_next(&[]);

    // The same report again, the same charge, one capture.
    let provider = Provider::start(&receiver, with_journal).await;
    while receiver.next_with_status().await != (StatusCode::OK, refused.clone()) {}
    wait_until(|| deliveries(&journal) == 1).await;
    let (_, replay) = provider.charge("k1", "o_1", 9000).await;
    assert_eq!((&replay["charge"], &replay["status"]), (&charge["charge"], &json!("captured")));
    let id = charge["charge"].as_str().unwrap();
    let (_, refund) = provider.refund("k2", id, 9000).await;
    assert_eq!(receiver.next().await["type"], "refund.succeeded");
    provider.charge("k3", "o_3", 1).await;
    assert_eq!(receiver.next().await["order"], "o_3");
    wait_until(|| deliveries(&journal) == 3).await;
    provider.stop().await;

    // Nothing is reported twice once taken; the refund is remembered.
    let provider = Provider::start(&receiver, with_journal).await;
    provider.charge("k4", "o_4", 100).await;
    assert_eq!(receiver.next().await["order"], "o_4");
    assert_eq!(provider.refund("k2", id, 9000).await.1, refund);
    let (_, summary) = provider.get("/summary").await;
    assert_eq!(
        summary,
        json!({"pending":0,"captures":3,"captured_minor":9101,"declines":0,"refunds":1,"refunded_minor":9000})
    );
    provider.stop().await;
}

#[tokio::test]
async fn refunds_happen_once_and_never_exceed_the_capture() {
    let mut receiver = Receiver::start().await;
    let provider = Provider::start(&receiver, |_| {}).await;
    let (_, charge) = provider.charge("k1", "o_1", 9000).await;
    let id = charge["charge"].as_str().unwrap();
    receiver.next().await;

    let (status, refund) = provider.refund("r1", id, 4000).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert!(refund["refund"].as_str().unwrap().starts_with("re_"));
    assert_eq!((&refund["status"], &refund["charge"]), (&json!("succeeded"), &charge["charge"]));
    let event = receiver.next().await;
    assert_eq!((&event["type"], &event["amount_minor"]), (&json!("refund.succeeded"), &json!(4000)));
    assert_eq!((&event["charge"], &event["order"]), (&charge["charge"], &json!("o_1")));

    assert_eq!(provider.refund("r1", id, 4000).await, (StatusCode::ACCEPTED, refund));
    assert_eq!(provider.refund("r1", id, 4001).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let (status, problem) = provider.refund("r2", id, 5001).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(problem["detail"].as_str().unwrap().contains("5000"), "{problem}");
    assert_eq!(provider.refund("r3", id, 5000).await.0, StatusCode::ACCEPTED);
    assert_eq!(provider.refund("r4", "ch_unknown", 1).await.0, StatusCode::NOT_FOUND);

    let (_, summary) = provider.get("/summary").await;
    assert_eq!((&summary["refunds"], &summary["refunded_minor"]), (&json!(2), &json!(9000)));
}

#[tokio::test]
async fn what_is_not_captured_cannot_be_refunded() {
    let receiver = Receiver::start().await;
    let provider = Provider::open(&receiver, |_| {}).await;
    let (_, charge) = provider.charge("k1", "o_1", 9000).await;
    let (status, _) = provider.refund("r1", charge["charge"].as_str().unwrap(), 9000).await;
    assert_eq!(status, StatusCode::CONFLICT);
}

type Headers<'a> = &'a [(&'a str, &'a str)];

#[tokio::test]
async fn bad_calls_get_problem_documents() {
    let receiver = Receiver::start().await;
    let provider = Provider::open(&receiver, |_| {}).await;
    let body = r#"{"order":"o_1","amount_minor":9000,"currency":"EUR"}"#;
    let key = ("Authorization", "Bearer sk_test");
    let once = ("Idempotency-Key", "k1");
    let long = "k".repeat(256);
    let huge = " ".repeat(20_000);
    #[rustfmt::skip]
    let cases: &[(u16, Method, &str, Headers<'_>, &str)] = &[
        (401, Method::POST, "/charges", &[once], body),
        (401, Method::POST, "/charges", &[once, ("Authorization", "Bearer sk_tesT")], body),
        (401, Method::POST, "/charges", &[once, ("Authorization", "sk_test")], body),
        (401, Method::GET, "/charges?order=o_1", &[], ""),
        (401, Method::GET, "/charges/ch_1", &[], ""),
        (401, Method::POST, "/refunds", &[once], "{}"),
        (400, Method::POST, "/charges", &[key], body),
        (400, Method::POST, "/charges", &[key, ("Idempotency-Key", &long)], body),
        (400, Method::POST, "/charges", &[key, once], "{\"order\":"),
        (400, Method::GET, "/charges", &[key], ""),
        (413, Method::POST, "/charges", &[key, once], &huge),
        (422, Method::POST, "/charges", &[key, once], "{}"),
        (422, Method::POST, "/charges", &[key, once], r#"{"order":"o_1","amount_minor":0,"currency":"EUR"}"#),
        (422, Method::POST, "/charges", &[key, once], r#"{"order":"o_1","amount_minor":-1,"currency":"EUR"}"#),
        (422, Method::POST, "/charges", &[key, once], r#"{"order":"","amount_minor":1,"currency":"EUR"}"#),
        (422, Method::POST, "/charges", &[key, once], r#"{"order":"o_1","amount_minor":1,"currency":"euro"}"#),
        (404, Method::GET, "/charges/ch_1", &[key], ""),
        (404, Method::GET, "/nowhere", &[], ""),
        (405, Method::DELETE, "/summary", &[], ""),
    ];
    for (expected, method, path, headers, body) in cases {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", provider.address));
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from((*body).to_owned()));
        let answer = provider.client.request(request.body(body).unwrap()).await.unwrap();
        let case = format!("{method} {path} {headers:?}");
        assert_eq!(answer.status().as_u16(), *expected, "{case}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json", "{case}");
        assert_eq!(answer.headers().contains_key("www-authenticate"), *expected == 401, "{case}");
        let problem: Value = serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!(problem["status"], *expected, "{case}");
        assert!(!problem["detail"].as_str().unwrap().is_empty(), "{case}");
    }
    assert_eq!(provider.get("/summary").await.1["pending"], 0);
}

#[test]
fn a_bad_setup_is_refused_with_a_cure() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("payments.jsonl");
    let with_journal = |config: &mut PaySandboxConfig| config.journal = Some(journal.clone());
    let refusal = |change: &dyn Fn(&mut PaySandboxConfig)| -> String {
        let mut config = config_for("127.0.0.1:9".parse().unwrap());
        change(&mut config);
        PaySandbox::open(config).map_or_else(|error: OpenError| error.to_string(), |_| "it opened".to_owned())
    };

    assert!(refusal(&|config| config.api_key = "".into()).contains("API key"));
    assert!(refusal(&|config| config.webhook_secret = "".into()).contains("webhook secret"));
    for url in ["", "/webhooks", "127.0.0.1:1", "https://127.0.0.1/"] {
        assert!(refusal(&|config| url.clone_into(&mut config.webhook_url)).contains("http://127.0.0.1:8081/"), "{url}");
    }
    for ratio in [-0.1, 1.1, f64::NAN] {
        assert!(
            refusal(&|config| config.behaviour.decline_ratio = ratio).contains("use 0 (never) to 1 (always)"),
            "{ratio}"
        );
    }
    std::fs::write(&journal, "not a journal\n").unwrap();
    assert!(refusal(&with_journal).contains("line 1 is damaged"));
    std::fs::write(&journal, "{\"entry\":\"delivery\",\"event\":\"evt_unknown\"}\n").unwrap();
    assert!(refusal(&with_journal).contains("line 1 is damaged"));
    std::fs::write(&journal, "").unwrap();
    let mut config = config_for("127.0.0.1:9".parse().unwrap());
    with_journal(&mut config);
    let _first = PaySandbox::open(config).unwrap();
    assert!(refusal(&with_journal).contains("another payment sandbox uses it"));
}

#[test]
fn the_setup_hides_its_secrets() {
    let text = format!("{:?}", config_for("127.0.0.1:9".parse().unwrap()));
    assert!(!text.contains(API_KEY) && !text.contains(WEBHOOK_SECRET), "{text}");
}

fn config_for(receiver: SocketAddr) -> PaySandboxConfig {
    PaySandboxConfig {
        api_key: API_KEY.into(),
        webhook_url: format!("http://{receiver}/webhooks/payments"),
        webhook_secret: WEBHOOK_SECRET.into(),
        behaviour: Behaviour { latency: Spread::of(Duration::ZERO), ..Behaviour::default() },
        journal: None,
    }
}

fn deliveries(journal: &Path) -> usize {
    std::fs::read_to_string(journal).unwrap().matches("\"delivery\"").count()
}

fn append(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

async fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "the condition did not come true in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Serves `router` on a free port until `shutdown` stops.
async fn serve(router: Router, shutdown: &Shutdown) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = shutdown.clone();
    shutdown.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = tokio::select! {
                () = stop.stopped() => return,
                accepted = listener.accept() => accepted.unwrap(),
            };
            let service = TowerToHyperService::new(router.clone());
            connections
                .spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// A running provider and a client of it.
struct Provider {
    address: SocketAddr,
    shutdown: Shutdown,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Provider {
    /// Settles charges and sends webhooks.
    async fn start(receiver: &Receiver, change: impl Fn(&mut PaySandboxConfig)) -> Self {
        Self::launch(receiver, change, true).await
    }

    /// Takes calls, but nothing happens by itself.
    async fn open(receiver: &Receiver, change: impl Fn(&mut PaySandboxConfig)) -> Self {
        Self::launch(receiver, change, false).await
    }

    async fn launch(receiver: &Receiver, change: impl Fn(&mut PaySandboxConfig), start: bool) -> Self {
        let mut config = config_for(receiver.address);
        change(&mut config);
        let deadline = Instant::now() + PATIENCE;
        // The thread of a provider that was just stopped may still be letting go of the journal.
        let sandbox = loop {
            match PaySandbox::open(config.clone()) {
                Ok(sandbox) => break sandbox,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let shutdown = Shutdown::new();
        if start {
            sandbox.start(&shutdown);
        }
        let address = serve(sandbox.router(), &shutdown).await;
        Self { address, shutdown, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    async fn stop(self) {
        self.shutdown.stop();
        assert!(self.shutdown.drain(PATIENCE).await, "a task of the provider does not end");
    }

    async fn charge(&self, key: &str, order: &str, amount_minor: u64) -> (StatusCode, Value) {
        self.post("/charges", key, &json!({"order": order, "amount_minor": amount_minor, "currency": "EUR"})).await
    }

    async fn refund(&self, key: &str, charge: &str, amount_minor: u64) -> (StatusCode, Value) {
        self.post("/refunds", key, &json!({"charge": charge, "amount_minor": amount_minor})).await
    }

    async fn post(&self, path: &str, key: &str, body: &Value) -> (StatusCode, Value) {
        let request = Request::post(format!("http://{}{path}", self.address)).header("idempotency-key", key);
        self.send(request, body.to_string()).await
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.send(Request::get(format!("http://{}{path}", self.address)), String::new()).await
    }

    async fn send(&self, request: http::request::Builder, body: String) -> (StatusCode, Value) {
        let request = request.header("authorization", format!("Bearer {API_KEY}")).body(Full::from(body)).unwrap();
        let answer = timeout(PATIENCE, self.client.request(request)).await.expect("the provider is silent").unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }
}

/// Where webhooks arrive: checks every signature and answers as told.
struct Receiver {
    address: SocketAddr,
    answers: Arc<Mutex<VecDeque<StatusCode>>>,
    arrivals: mpsc::UnboundedReceiver<(StatusCode, HeaderMap, Bytes)>,
    shutdown: Shutdown,
}

type Inbox = (Arc<Mutex<VecDeque<StatusCode>>>, mpsc::UnboundedSender<(StatusCode, HeaderMap, Bytes)>);

impl Receiver {
    async fn start() -> Self {
        async fn take(State((answers, inbox)): State<Inbox>, headers: HeaderMap, body: Bytes) -> StatusCode {
            let status = answers.lock().unwrap().pop_front().unwrap_or(StatusCode::OK);
            inbox.send((status, headers, body)).unwrap();
            status
        }
        let answers = Arc::default();
        let (inbox, arrivals) = mpsc::unbounded_channel();
        let router = Router::new().route("/webhooks/payments", post(take)).with_state((Arc::clone(&answers), inbox));
        let shutdown = Shutdown::new();
        let address = serve(router, &shutdown).await;
        Self { address, answers, arrivals, shutdown }
    }

    /// Answers the next webhooks so, and those after them with 200.
    fn answer_next(&self, statuses: &[StatusCode]) {
        *self.answers.lock().unwrap() = statuses.iter().copied().collect();
    }

    async fn next(&mut self) -> Value {
        self.next_with_status().await.1
    }

    /// The next webhook, its signature checked, and how it was answered.
    async fn next_with_status(&mut self) -> (StatusCode, Value) {
        let arrival = timeout(PATIENCE, self.arrivals.recv()).await.expect("no webhook came");
        let (status, headers, body) = arrival.unwrap();
        assert_eq!(headers["content-type"], "application/json");
        assert_signed(headers["stanchion-pay-signature"].to_str().unwrap(), &body);
        (status, serde_json::from_slice(&body).unwrap())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shutdown.stop();
    }
}

fn assert_signed(header: &str, body: &[u8]) {
    let (time, digest) = header.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, WEBHOOK_SECRET.as_bytes());
    let digest: Vec<u8> = (0..64).step_by(2).map(|at| u8::from_str_radix(&digest[at..at + 2], 16).unwrap()).collect();
    ring::hmac::verify(&key, &[time.as_bytes(), b".", body].concat(), &digest).expect("the signature does not match");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(time.parse().unwrap()) <= 60, "signed at {time}, now {now}");
}
