//! A plain HTTP client for stories that are not about bytes.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};

const PATIENCE: Duration = Duration::from_secs(10);

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// The value of a header that is there once; empty when it is not.
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map_or("", |value| value.to_str().unwrap());
        assert!(values.next().is_none(), "{name} more than once");
        value
    }

    /// The value that an answer's `Set-Cookie` gives to the cookie `name`.
    pub fn cookie(&self, name: &str) -> Option<String> {
        let lines = self.headers.get_all(http::header::SET_COOKIE).iter().map(|line| line.to_str().unwrap());
        let mut pairs = lines.filter_map(|line| line.split(';').next()?.split_once('='));
        pairs.rfind(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    }
}

pub async fn get(url: &str) -> Answer {
    request(Method::GET, url, &[], "").await
}

pub async fn request(method: Method, url: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    try_request(method, url, headers, body).await.unwrap_or_else(|trouble| panic!("{trouble}"))
}

/// What the server answered; or what came in between.
pub async fn try_request(
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Answer, String> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).unwrap();
    let exchange = async {
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        let answer = client.request(request).await.map_err(|error| format!("{url}: {error}"))?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(|error| format!("{url}: {error}"))?.to_bytes();
        Ok(Answer { status: head.status, headers: head.headers, body })
    };
    let late = |_| Err(format!("{url}: no answer in {PATIENCE:?}"));
    tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(late)
}
