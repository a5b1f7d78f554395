//! Somebody who wants tickets and asks the same again until there is an answer, at whichever box office.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::Method;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};

use super::cast::{Cast, SEATS};
use crate::support::{http::Answer, watched_program::PATIENCE};

/// What a buyer was told in the end.
#[derive(Debug, Clone)]
pub struct Purchase {
    pub order: String,
    pub status: String,
    pub seats: Vec<String>,
}

pub struct Shopper {
    cast: Arc<Cast>,
    random: StdRng,
    number: usize,
    deadline: Instant,
}

impl Shopper {
    pub fn new(cast: Arc<Cast>, seed: u64, number: usize) -> Self {
        let random = StdRng::seed_from_u64(seed.wrapping_add((number as u64 + 1) << 32));
        Self { cast, random, number, deadline: Instant::now() + PATIENCE }
    }

    /// Until an order has ended. Who finds tickets taken, or a hold gone, chooses again.
    pub async fn buy(mut self) -> Purchase {
        for attempt in 0.. {
            let wish = self.wish();
            let answer = self.insist(Method::POST, "/events/demo/holds", &[], &wish).await;
            if answer.status != 201 {
                assert_eq!(answer.status, 409, "{}", answer.text());
                continue;
            }
            let hold = answer.json()["hold"].as_str().unwrap().to_owned();
            let key = format!("buyer-{}-{attempt}", self.number);
            let placed =
                self.insist(Method::POST, "/orders", &[("idempotency-key", &key)], &json!({ "hold": hold })).await;
            match placed.status.as_u16() {
                202 => return self.follow(&placed.json()).await,
                // Redis forgot it, or it was not ordered in time, or the ledger gave its seats to another.
                404 | 410 => {}
                409 => assert!(placed.text().contains("problem:taken"), "{}", placed.text()),
                _ => panic!("{}", placed.text()),
            }
        }
        unreachable!("whoever has no patience left panics")
    }

    /// Mostly one or two seats, now and then in the front row where all want to be; else general admission.
    fn wish(&mut self) -> Value {
        if self.random.random_ratio(1, 5) {
            return json!({ "quantity": self.random.random_range(1..=2) });
        }
        let among = if self.random.random_ratio(1, 6) { 40 } else { SEATS };
        let first = self.random.random_range(0..among);
        let mut seats = vec![seat(first)];
        if self.random.random_ratio(1, 3) {
            seats.push(seat((first + 1) % SEATS));
        }
        json!({ "seats": seats })
    }

    async fn follow(mut self, order: &Value) -> Purchase {
        let name = order["order"].as_str().unwrap().to_owned();
        let seats = serde_json::from_value(order["seats"].clone()).unwrap();
        loop {
            let seen = self.insist(Method::GET, &format!("/orders/{name}"), &[], &Value::Null).await;
            assert_eq!(seen.status, 200, "an order that was accepted is there: {}", seen.text());
            let status = seen.json()["status"].as_str().unwrap().to_owned();
            if status != "pending" {
                return Purchase { order: name, status, seats };
            }
            self.pause("its outcome").await;
        }
    }

    /// Asks either box office until one gives an answer that is no passing trouble.
    async fn insist(&mut self, method: Method, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        loop {
            let office = self.cast.office(&mut self.random);
            if let Some(answer) = office.ask(method.clone(), path, headers, &body).await {
                return answer;
            }
            self.pause(path).await;
        }
    }

    async fn pause(&self, what: &str) {
        assert!(Instant::now() < self.deadline, "buyer {} waits in vain for {what}\n{}", self.number, self.cast.said());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Rows of forty, `A1` to `T40`.
fn seat(index: u32) -> String {
    let row = char::from(b'A' + u8::try_from(index / 40).unwrap());
    format!("{row}{}", index % 40 + 1)
}
