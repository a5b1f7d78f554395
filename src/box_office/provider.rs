//! The payment provider's API, as its client.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    config::ProviderConfig,
    ids::OrderId,
    ledger::{Notice, Outcome, Task},
    pacer::{LONGEST_PAUSE, Pacer},
};
use crate::{config::Secret, store::SharedEngine};

/// Most bytes of an answer that are read.
const ANSWER_LIMIT: usize = 256 * 1024;
/// A provider that has too many calls and does not say for how long.
const USUAL_PAUSE: Duration = Duration::from_secs(1);

/// Why the provider did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// It may or may not have done it: no answer in time, a broken one, or "later". Ask again with the same key.
    #[error("{reason}")]
    Unclear {
        /// What happened.
        reason: String,
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
    },
    /// It did nothing, because there are too many calls; all wait for as long as this.
    #[error("the provider has too many calls")]
    Busy(Duration),
    /// It will not do it, now or later.
    #[error("the provider refuses: {0}")]
    Refused(StatusCode),
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err as it is")]
fn unclear(reason: impl ToString) -> ProviderError {
    ProviderError::Unclear { reason: reason.to_string(), retry_after: None }
}

/// A charge as the provider sees it.
#[derive(Debug, Clone, Deserialize)]
pub struct Charge {
    #[serde(rename = "charge")]
    id: String,
    status: String,
    amount_minor: u64,
    currency: String,
}

impl Charge {
    /// What it says about `order`; `None` while it is pending.
    pub fn notice(self, order: &OrderId) -> Option<Notice> {
        let outcome = match self.status.as_str() {
            "captured" => Outcome::Captured,
            "declined" => Outcome::Declined,
            "refunded" => Outcome::Refunded,
            _ => return None,
        };
        Some(Notice {
            event: None,
            charge: self.id,
            order: order.clone(),
            outcome,
            amount_minor: self.amount_minor,
            currency: self.currency,
        })
    }
}

#[derive(Deserialize)]
struct Charges {
    charges: Vec<Charge>,
}

#[derive(Deserialize)]
struct Refund {
    status: String,
}

/// A client of one provider. Every call has a deadline. Whoever calls waits for [`Self::pacer`] first.
#[derive(Debug)]
pub struct Provider {
    client: Client<HttpConnector, Full<Bytes>>,
    base: Uri,
    api_key: Secret,
    timeout: Duration,
    /// Whose turn it is.
    pub pacer: Pacer,
}

impl Provider {
    /// A client; nothing is connected yet. `None` when the address is not `http://HOST:PORT`.
    pub fn new(config: &ProviderConfig, engine: SharedEngine) -> Option<Self> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(config.timeout));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            // Shorter than servers keep idle connections, so that we do not write into one that is being closed.
            .pool_idle_timeout(Duration::from_secs(4))
            .build(connector);
        let base = config.base()?;
        let pacer = Pacer::new(engine, base.authority()?.as_str(), config.most_per_second);
        Some(Self { client, base, api_key: config.api_key.clone(), timeout: config.timeout, pacer })
    }

    /// Charges an order. The same task may be sent any number of times: its subject is the idempotency key.
    pub async fn charge(&self, task: &Task) -> Result<Charge, ProviderError> {
        let body = serde_json::json!({
            "order": task.order.as_str(), "amount_minor": task.amount_minor, "currency": task.currency,
        });
        self.call(Method::POST, "/charges", Some((&task.subject, body))).await
    }

    /// Gives a charge back; whether that is already done. Like [`Self::charge`], it may be repeated.
    pub async fn refund(&self, task: &Task) -> Result<bool, ProviderError> {
        let body = serde_json::json!({ "charge": task.subject, "amount_minor": task.amount_minor });
        let key = format!("refund-{}", task.subject);
        let refund: Refund = self.call(Method::POST, "/refunds", Some((&key, body))).await?;
        Ok(refund.status == "succeeded")
    }

    /// Every charge the provider has for an order.
    pub async fn charges_of(&self, order: &OrderId) -> Result<Vec<Charge>, ProviderError> {
        let charges: Charges = self.call(Method::GET, &format!("/charges?order={}", order.as_str()), None).await?;
        Ok(charges.charges)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, serde_json::Value)>,
    ) -> Result<T, ProviderError> {
        tokio::time::timeout(self.timeout, self.call_untimed(method, path, body))
            .await
            .map_err(|_| unclear("no answer in time"))?
    }

    async fn call_untimed<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, serde_json::Value)>,
    ) -> Result<T, ProviderError> {
        let authority = self.base.authority().map_or_else(String::new, ToString::to_string);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{authority}{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.api_key.expose()))
            .header(header::ACCEPT, "application/json");
        let mut bytes = Bytes::new();
        if let Some((key, body)) = body {
            request = request.header("Idempotency-Key", key).header(header::CONTENT_TYPE, "application/json");
            bytes = Bytes::from(body.to_string());
        }
        let request = request.body(Full::new(bytes)).map_err(unclear)?;
        let response = self.client.request(request).await.map_err(unclear)?;
        let status = response.status();
        if !status.is_success() {
            let failure = failure(status, response.headers());
            if let ProviderError::Busy(pause) = failure {
                self.pacer.pause(pause);
            }
            return Err(failure);
        }
        let body = Limited::new(response.into_body(), ANSWER_LIMIT).collect().await.map_err(unclear)?.to_bytes();
        serde_json::from_slice(&body).map_err(|error| unclear(format!("unreadable answer: {error}")))
    }
}

/// 408, 409 and 429 mean "not now"; any other 4xx means "never".
fn failure(status: StatusCode, headers: &http::HeaderMap) -> ProviderError {
    // Whatever it asks for, we look again within five minutes.
    let retry_after = retry_after(headers).map(|wait| wait.min(Duration::from_mins(5)));
    match status.as_u16() {
        429 => ProviderError::Busy(retry_after.unwrap_or(USUAL_PAUSE).min(LONGEST_PAUSE)),
        408 | 409 => ProviderError::Unclear { reason: format!("status {status}"), retry_after },
        _ if status.is_client_error() => ProviderError::Refused(status),
        _ => ProviderError::Unclear { reason: format!("status {status}"), retry_after },
    }
}

/// How long the provider asks us to wait, as seconds or as a date (RFC 9110 §10.2.3), which is meant by its own clock.
fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    let now = headers.get(header::DATE).and_then(|value| date(value.to_str().ok()?));
    let wait = date(text)?.duration_since(now.unwrap_or_else(jiff::Timestamp::now));
    // A moment that is over is now.
    Some(wait.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date_by_the_providers_clock() {
        let wait = |retry_after: &str, date: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, retry_after.parse().unwrap());
            if let Some(date) = date {
                headers.insert(header::DATE, date.parse().unwrap());
            }
            super::retry_after(&headers).map(|wait| wait.as_secs())
        };
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(wait("7", None), Some(7));
        assert_eq!(wait("Sun, 06 Nov 1994 08:50:07 GMT", date), Some(30));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:07 GMT", date), Some(0), "over already");
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT", None), Some(0), "by our own clock");
        assert!(wait("Tue, 31 Dec 2999 23:59:59 GMT", None).unwrap() > 1_000_000);
        for odd in ["soon", "-1", "1.5", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(wait(odd, date), None, "{odd}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, "Tue, 31 Dec 2999 23:59:59 GMT".parse().unwrap());
        assert!(matches!(failure(StatusCode::TOO_MANY_REQUESTS, &headers), ProviderError::Busy(LONGEST_PAUSE)));
    }
}
