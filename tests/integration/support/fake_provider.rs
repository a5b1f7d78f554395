//! A payment provider that does what the test tells it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    response::{IntoResponse, Response},
    routing::post,
};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use stanchion::{listener, shutdown::Shutdown};

use super::box_office::eventually;

/// What the provider does with a charge it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Takes it; nothing is decided until the test sends a webhook or calls [`FakeProvider::decide`].
    Take,
    /// Takes it and never answers.
    TakeAndStall,
    /// Takes it and answers 500.
    TakeAndFail,
    /// Answers 429 and how many seconds to wait; takes nothing.
    Busy(u32),
    /// Answers with this status and takes nothing.
    Fail(u16),
}

#[derive(Debug)]
struct Book {
    behaviour: Behaviour,
    /// By idempotency key.
    charges: HashMap<String, Value>,
    refunds: HashMap<String, Value>,
    requests: usize,
    questions: usize,
    /// Fails with 500 for this order, and takes nothing, whatever the behaviour.
    poison: Option<String>,
}

#[derive(Debug, Clone)]
pub struct FakeProvider {
    book: Arc<Mutex<Book>>,
    pub url: String,
}

impl FakeProvider {
    pub async fn start(shutdown: &Shutdown) -> Self {
        let book = Book {
            behaviour: Behaviour::Take,
            charges: HashMap::new(),
            refunds: HashMap::new(),
            requests: 0,
            questions: 0,
            poison: None,
        };
        let socket = listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let this = Self { book: Arc::new(Mutex::new(book)), url: format!("http://{}", socket.local_addr().unwrap()) };
        let router = Router::new()
            .route("/charges", post(take_charge).get(list_charges))
            .route("/refunds", post(take_refund))
            .with_state(this.clone());
        shutdown.spawn(listener::serve(socket, router, shutdown.clone()));
        this
    }

    pub fn behave(&self, behaviour: Behaviour) {
        self.book.lock().unwrap().behaviour = behaviour;
    }

    pub fn poison(&self, order: &str) {
        self.book.lock().unwrap().poison = Some(order.to_owned());
    }

    /// Decides the charge of `order` without telling anybody.
    pub fn decide(&self, order: &str, status: &str) {
        self.book.lock().unwrap().charges.get_mut(order).unwrap()["status"] = json!(status);
    }

    pub fn forget_charges(&self) {
        self.book.lock().unwrap().charges.clear();
    }

    pub fn charges(&self) -> Vec<Value> {
        self.book.lock().unwrap().charges.values().cloned().collect()
    }

    pub fn refunds(&self) -> Vec<Value> {
        self.book.lock().unwrap().refunds.values().cloned().collect()
    }

    /// How many times it was asked to charge.
    pub fn requests(&self) -> usize {
        self.book.lock().unwrap().requests
    }

    /// How many times it was asked for an order's charges.
    pub fn questions(&self) -> usize {
        self.book.lock().unwrap().questions
    }

    /// The charge made for `order`, once there is one.
    pub async fn charge_of(&self, order: &str) -> String {
        eventually("the order is charged", || async {
            let book = self.book.lock().unwrap();
            book.charges.get(order).map(|charge| charge["charge"].as_str().unwrap().to_owned())
        })
        .await
    }
}

async fn take_charge(State(provider): State<FakeProvider>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let (behaviour, charge) = {
        let mut book = provider.book.lock().unwrap();
        book.requests += 1;
        let (behaviour, number) = (book.behaviour, book.charges.len());
        if book.poison.as_deref() == body["order"].as_str() {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        match behaviour {
            Behaviour::Fail(status) => return StatusCode::from_u16(status).unwrap().into_response(),
            Behaviour::Busy(seconds) => {
                return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", seconds.to_string())]).into_response();
            }
            Behaviour::Take | Behaviour::TakeAndStall | Behaviour::TakeAndFail => {}
        }
        assert_eq!(headers["authorization"], "Bearer the-key");
        let key = headers["idempotency-key"].to_str().unwrap().to_owned();
        let fresh = json!({
            "charge": format!("ch_{number}_{key}"), "order": body["order"], "status": "pending",
            "amount_minor": body["amount_minor"], "currency": body["currency"],
        });
        (behaviour, book.charges.entry(key).or_insert(fresh).clone())
    };
    if behaviour == Behaviour::TakeAndStall {
        std::future::pending::<()>().await;
    }
    if behaviour == Behaviour::TakeAndFail {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    (StatusCode::ACCEPTED, Json(charge)).into_response()
}

async fn list_charges(
    State(provider): State<FakeProvider>,
    Query(query): Query<HashMap<String, String>>,
) -> Json<Value> {
    provider.book.lock().unwrap().questions += 1;
    let charges: Vec<Value> =
        provider.charges().into_iter().filter(|charge| charge["order"] == query["order"].as_str()).collect();
    Json(json!({ "charges": charges }))
}

async fn take_refund(State(provider): State<FakeProvider>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let fresh = json!({
        "refund": format!("re_{key}"), "charge": body["charge"], "status": "succeeded",
        "amount_minor": body["amount_minor"], "currency": "EUR",
    });
    let refund = provider.book.lock().unwrap().refunds.entry(key).or_insert(fresh).clone();
    (StatusCode::ACCEPTED, Json(refund)).into_response()
}
