//! What the private listener says: the room's limits before, the audit after.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::Uri;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep};

use super::{
    client::{Ask, Tab, Target},
    personality::{Personality, dice},
    record::Person,
    tally::{Kind, Tally},
};

/// What the room promises to keep to.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Limits {
    /// Most visitors inside, called ones counted.
    pub capacity: u32,
    /// Most admissions per second.
    pub rate: f64,
    /// Admissions that may come at once beyond an even flow.
    pub burst: u32,
}

/// `GET /events/{event}/audit`: the box office's own account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Audit {
    /// Tickets in all.
    pub total: u64,
    /// Tickets nobody has, by the inventory.
    pub free: i64,
    /// Tickets held, by the inventory.
    pub held: i64,
    /// Tickets sold, by the inventory.
    pub sold: i64,
    /// Tickets of confirmed orders, by the ledger.
    pub tickets_confirmed: u64,
    /// Orders by status.
    #[serde(default)]
    pub orders: BTreeMap<String, u64>,
    /// Each seat has one buyer at most.
    pub g7_one_seat_one_buyer: bool,
    /// Free, held and sold add up.
    pub g8_conservation: bool,
    /// The provider's captures are the confirmed orders and the refunds.
    pub g9_money: bool,
}

impl Audit {
    fn is_quiet(&self) -> bool {
        let pending = self.orders.get("pending").copied().unwrap_or_default();
        pending == 0 && self.g7_one_seat_one_buyer && self.g8_conservation && self.g9_money
    }
}

/// How long payments may take to settle after the last buyer left.
const QUIET_WITHIN: Duration = Duration::from_secs(30);

/// A private listener: the gateway's knows the limits, the box office's the audit, and one of both knows both.
#[derive(Debug)]
pub(super) struct Admin {
    url: Uri,
}

impl Admin {
    pub(super) fn at(url: Uri) -> Self {
        Self { url }
    }

    pub(super) async fn limits(&self, room: &str) -> Result<Limits, String> {
        self.get(&format!("/api/rooms/{room}")).await
    }

    pub(super) async fn audit(&self, event: &str) -> Result<Audit, String> {
        self.get(&format!("/events/{event}/audit")).await
    }

    /// The audit once nothing is pending and everything adds up, or as it stands after half a minute.
    pub(super) async fn quiet_audit(&self, event: &str) -> Result<Audit, String> {
        let deadline = Instant::now() + QUIET_WITHIN;
        loop {
            let audit = self.audit(event).await;
            if audit.as_ref().map_or(true, Audit::is_quiet) || Instant::now() >= deadline {
                return audit;
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        let at = format!("{}{path}", self.url.to_string().trim_end_matches('/'));
        let target = Target::find(&self.url).await.map_err(|error| error.to_string())?;
        let person = Arc::new(std::sync::Mutex::new(Person::new("", Personality::Plain)));
        let mut tab = Tab::new(Arc::new(target), Arc::new(Tally::default()), person);
        let answer = tab
            .ask(&Ask::get(Kind::Status, path), &mut dice(0, 0))
            .await
            .map_err(|error| format!("GET {at}: {}", error.describe()))?;
        if answer.status != 200 {
            return Err(format!("GET {at}: status {}", answer.status));
        }
        serde_json::from_slice(&answer.body).map_err(|error| format!("GET {at}: not the answer promised ({error})"))
    }
}
