//! The names of an event's keys. One hash tag per event keeps an event in one Redis Cluster slot.

/// Key names of one event.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Hash: hold → record.
    pub holds: String,
    /// Sorted set: hold → deadline in milliseconds, or when to forget it.
    pub deadlines: String,
    /// Hash of general admission: total, free, held, sold, and how often they moved.
    pub tickets: String,
    /// Hash: order → general-admission tickets sold to it.
    pub sold: String,
    /// String: runs out when the next look at the holds is due.
    pub alarm: String,
    /// String: which node compares the store with the ledger.
    pub reconciler: String,
    seat: String,
}

impl Keys {
    /// The keys of `event`.
    pub fn of(event: &str) -> Self {
        let prefix = format!("stanchion-box:{{{event}}}");
        Self {
            holds: format!("{prefix}:holds"),
            deadlines: format!("{prefix}:deadlines"),
            tickets: format!("{prefix}:tickets"),
            sold: format!("{prefix}:sold"),
            alarm: format!("{prefix}:alarm"),
            reconciler: format!("{prefix}:reconciler"),
            seat: format!("{prefix}:seat:"),
        }
    }

    /// String: who has the seat, a hold until its deadline or an order for good.
    pub fn seat(&self, name: &str) -> String {
        format!("{}{name}", self.seat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_bytes() {
        let keys = Keys::of("demo");
        assert_eq!(keys.holds, "stanchion-box:{demo}:holds");
        assert_eq!(keys.deadlines, "stanchion-box:{demo}:deadlines");
        assert_eq!(keys.tickets, "stanchion-box:{demo}:tickets");
        assert_eq!(keys.sold, "stanchion-box:{demo}:sold");
        assert_eq!(keys.alarm, "stanchion-box:{demo}:alarm");
        assert_eq!(keys.reconciler, "stanchion-box:{demo}:reconciler");
        assert_eq!(keys.seat("AB12"), "stanchion-box:{demo}:seat:AB12");
    }
}
