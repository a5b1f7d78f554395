//! One visitor with a cookie jar, speaking plain HTTP/1.1 as a browser or an app would.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::Value;

const DEADLINE: Duration = Duration::from_secs(30);

pub struct Visitor {
    base: String,
    jar: BTreeMap<String, String>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }
}

impl Visitor {
    pub fn new(base: &str) -> Self {
        Self { base: base.to_owned(), jar: BTreeMap::new() }
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.jar.get(name).map(String::as_str)
    }

    /// The payload of a token cookie, unverified.
    pub fn claims(&self, cookie: &str) -> Value {
        let token = self.cookie(cookie).unwrap_or_else(|| panic!("no cookie {cookie}"));
        let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
        serde_json::from_slice(&payload).unwrap()
    }

    /// A navigation, as a browser makes it.
    pub async fn navigate(&mut self, path: &str) -> Answer {
        let headers = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8"), ("sec-fetch-mode", "navigate")];
        self.send(Method::GET, path, &headers, "").await
    }

    /// An API call that wants JSON.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, &[("accept", "application/json")], "").await
    }

    pub async fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers = [&[("accept", "application/json"), ("content-type", "application/json")], headers].concat();
        self.send(Method::POST, path, &headers, &body.to_string()).await
    }

    pub async fn send(&mut self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !self.jar.is_empty() {
            let cookies: Vec<String> = self.jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header(header::COOKIE, cookies.join("; "));
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let exchange = async {
            let response = client.request(request).await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
            let (head, body) = response.into_parts();
            (head, body.collect().await.unwrap().to_bytes())
        };
        let (head, body) =
            tokio::time::timeout(DEADLINE, exchange).await.unwrap_or_else(|_| panic!("{path}: no answer"));
        self.keep_cookies(&head.headers);
        Answer { status: head.status, body: String::from_utf8_lossy(&body).into_owned() }
    }

    /// Polls until `done` says so, or fails after the deadline with the last answer.
    pub async fn poll(&mut self, path: &str, done: impl Fn(&Answer) -> bool) -> Answer {
        let started = Instant::now();
        loop {
            let answer = self.get(path).await;
            if done(&answer) {
                return answer;
            }
            assert!(started.elapsed() < DEADLINE, "{path}: still {answer:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn keep_cookies(&mut self, headers: &HeaderMap) {
        for line in headers.get_all(header::SET_COOKIE) {
            let line = line.to_str().unwrap();
            let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.to_ascii_lowercase().contains("max-age=0") {
                self.jar.remove(name);
            } else {
                self.jar.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}
