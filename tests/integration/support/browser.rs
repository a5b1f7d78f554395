//! A visitor: an HTTP client with a cookie jar and a browser's headers.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Method, StatusCode};

use super::http::{Answer, request};

/// A browser's own headers when a person follows a link.
pub const NAVIGATION: [(&str, &str); 3] = [
    ("accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

const PATIENCE: Duration = Duration::from_secs(20);

/// A client with a cookie jar.
#[derive(Clone)]
pub struct Browser {
    pub url: String,
    pub cookies: BTreeMap<String, String>,
}

impl Browser {
    /// A browser with an empty jar, for `http://HOST:PORT`.
    pub fn at(url: &str) -> Self {
        Self { url: url.to_owned(), cookies: BTreeMap::new() }
    }

    /// Follows a link.
    pub async fn open(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, &NAVIGATION, "").await
    }

    /// Calls an API.
    pub async fn call(&mut self, method: Method, path: &str) -> Answer {
        self.send(method, path, &[("accept", "application/json")], "").await
    }

    /// The poll.
    pub async fn status(&mut self) -> serde_json::Value {
        let answer = self.call(Method::GET, "/__room/main/status?to=/shop").await;
        assert_eq!((answer.status, answer.header("cache-control")), (StatusCode::OK, "no-store"));
        answer.json()
    }

    /// Polls until the state is `state`.
    pub async fn until(&mut self, state: &str) -> serde_json::Value {
        self.until_json("/__room/main/status?to=/shop", |status| status["state"] == state).await
    }

    /// Asks for a document until it is as wanted.
    pub async fn until_json(&mut self, path: &str, wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let document = self.call(Method::GET, path).await.json();
            if wanted(&document) {
                return document;
            }
            assert!(Instant::now() < deadline, "{path}: waited too long, and it is still {document}");
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Sends JSON.
    pub async fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &serde_json::Value) -> Answer {
        let json = [("accept", "application/json"), ("content-type", "application/json")];
        self.send(Method::POST, path, &[&json, headers].concat(), &body.to_string()).await
    }

    pub async fn send(&mut self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let mut all = headers.to_vec();
        if !cookies.is_empty() {
            all.push(("cookie", &cookies));
        }
        let answer = request(method, &format!("{}{path}", self.url), &all, body.to_owned()).await;
        self.keep(&answer);
        answer
    }

    fn keep(&mut self, answer: &Answer) {
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            if line.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// What the token in a cookie says.
    pub fn claims(&self, cookie: &str) -> serde_json::Value {
        let payload = self.cookies[cookie].split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
    }

    /// Whether the jar holds a session.
    pub fn has_session(&self) -> bool {
        self.cookies.contains_key("stanchion_s_main")
    }
}
