//! The real program with a sale, and the plain visitors who crowd its door.

use ::http::Method;
use serde_json::{Value, json};

use crate::{browser::Browser as Visitor, program::Demo};

pub struct House {
    demo: Demo,
    crowd: Vec<Visitor>,
    _data: tempfile::TempDir,
}

impl House {
    /// `stanchion demo` with these arguments.
    pub fn open(args: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        Self { demo: Demo::start(data.path(), args), crowd: Vec::new(), _data: data }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.demo.shop)
    }

    /// One more visitor, who is let in or put in line.
    pub async fn comes(&mut self) -> usize {
        let mut visitor = Visitor::at(&self.demo.shop);
        visitor.open("/events/demo").await;
        self.crowd.push(visitor);
        self.crowd.len() - 1
    }

    pub fn is_inside(&self, who: usize) -> bool {
        self.crowd[who].has_session()
    }

    /// Gives a place or a slot up.
    pub async fn leaves(&mut self, who: usize) {
        assert_eq!(self.crowd[who].post("/__room/main/leave", &[], &json!({})).await.status, 204);
    }

    /// Waits to be let in.
    pub async fn enters(&mut self, who: usize) {
        self.crowd[who].until("admitted").await;
    }

    /// Buys a seat, and is seen to own it: asked behind the gateway's back, so that the visit goes on.
    pub async fn buys(&mut self, who: usize, seat: &str) {
        let hold = self.crowd[who].post("/events/demo/holds", &[], &json!({ "seats": [seat] })).await;
        assert_eq!(hold.status, 201, "{hold:?}");
        let wish = json!({ "hold": hold.json()["hold"] });
        let order = self.crowd[who].post("/orders", &[("idempotency-key", seat)], &wish).await;
        assert_eq!(order.status, 202, "{order:?}");
        let path = format!("/orders/{}", order.json()["order"].as_str().unwrap());
        Visitor::at(&self.demo.box_office).until_json(&path, |order| order["status"] == "confirmed").await;
    }

    /// Looks at the shop, as its page does every few seconds.
    pub async fn looks(&mut self, who: usize) {
        assert_eq!(self.crowd[who].call(Method::GET, "/events/demo").await.status, 200);
    }

    pub async fn audit(&self) -> Value {
        Visitor::at(&self.demo.admin).call(Method::GET, "/events/demo/audit").await.json()
    }
}
