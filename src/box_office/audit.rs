//! Does the box office keep its word: one seat one buyer, nothing lost, money for tickets.

use serde::{Deserialize, Serialize};

use super::{
    inventory::InventoryState,
    ledger::LedgerCounts,
    office::{Office, OfficeError},
    repair::ReconcilerView,
};

/// How often it is tried to catch a moment in which nothing moves.
const TRIES: usize = 5;

/// Orders by how far they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each counts the orders of its status")]
pub struct OrderCounts {
    pub pending: u64,
    pub confirmed: u64,
    pub refused: u64,
    pub expired: u64,
    pub refunded: u64,
}

/// The answer of `GET /events/{event}/audit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// The event's identifier.
    pub event: String,
    /// Tickets there are, seats and general admission together.
    pub total: u64,
    /// Of them free in the inventory.
    pub free: i64,
    /// Of them held in the inventory.
    pub held: i64,
    /// Of them sold in the inventory.
    pub sold: i64,
    /// Orders in the ledger.
    pub orders: OrderCounts,
    /// Tickets of confirmed orders in the ledger.
    pub tickets_confirmed: u64,
    /// Seats of confirmed orders in the ledger, each counted once.
    pub distinct_seats_sold: u64,
    /// Charges that took money, given back since or not.
    pub captures: u64,
    /// Charges whose money was given back.
    pub refunds: u64,
    /// Charges whose money is still to be given back.
    pub refunds_owed: u64,
    /// Charges that took another sum than was ordered; for a person to look at.
    pub mismatched: u64,
    /// Calls to the provider still to be made.
    pub tasks_due: u64,
    /// Calls to the provider given up; each ended its order, or is a refund for a person to look at.
    pub tasks_parked: u64,
    /// Orders of whose status the inventory has not been told yet.
    pub untold: u64,
    /// How often the provider is still asked about orders that ended without a sale: it may have taken money since.
    pub late_questions_left: u64,
    /// No seat has two confirmed orders, and no more general admission is confirmed than there is.
    pub g7_one_seat_one_buyer: bool,
    /// Free, held and sold add up, and the inventory has sold what the ledger has. The latter is judged at a quiet
    /// moment only: while orders are being settled the inventory learns of them a little later.
    pub g8_conservation: bool,
    /// Every charge belongs to one confirmed order or is given back or owed. Holds at every moment, as the ledger
    /// records a charge and its consequence together.
    pub g9_money: bool,
    /// What this node's reconciler did, and who has the lease.
    pub reconciler: ReconcilerView,
}

impl Office {
    /// Counts everything anew.
    pub async fn audit(&self) -> Result<Audit, OfficeError> {
        let event = &self.config.event;
        let (state, ledger, quiet) = self.count().await?;
        let total = u64::from(event.seats) + u64::from(event.general_admission);
        let counts = state.seat_counts.plus(state.tickets);
        let adds_up = counts.free + counts.held + counts.sold == i64::try_from(total).unwrap_or(i64::MAX);
        let agrees = u64::try_from(counts.sold) == Ok(ledger.tickets_confirmed) || !quiet;
        Ok(Audit {
            event: event.id.clone(),
            total,
            free: counts.free,
            held: counts.held,
            sold: counts.sold,
            orders: OrderCounts {
                pending: ledger.pending,
                confirmed: ledger.confirmed,
                refused: ledger.refused,
                expired: ledger.expired,
                refunded: ledger.refunded,
            },
            tickets_confirmed: ledger.tickets_confirmed,
            distinct_seats_sold: ledger.distinct_seats_sold,
            captures: ledger.captures,
            refunds: ledger.refunds,
            refunds_owed: ledger.refunds_owed,
            mismatched: ledger.mismatched,
            tasks_due: ledger.tasks_due,
            tasks_parked: ledger.tasks_parked,
            untold: ledger.untold,
            late_questions_left: ledger.late_questions_left,
            g7_one_seat_one_buyer: ledger.seats_sold == ledger.distinct_seats_sold
                && ledger.general_confirmed <= u64::from(event.general_admission),
            g8_conservation: adds_up && agrees,
            g9_money: ledger.mismatched == 0
                && ledger.captures == ledger.confirmed + ledger.refunds + ledger.refunds_owed,
            reconciler: self.reconciler_view().await?,
        })
    }

    /// Inventory and ledger, and whether the ledger stood still while the inventory was read.
    async fn count(&self) -> Result<(InventoryState, LedgerCounts, bool), OfficeError> {
        let mut before = self.ledger.counts(&self.config.event.id).await?;
        let mut tries = TRIES;
        loop {
            let state = self.state().await?;
            let after = self.ledger.counts(&self.config.event.id).await?;
            let quiet = before == after && after.untold == 0;
            tries = tries.saturating_sub(1);
            if quiet || tries == 0 {
                return Ok((state, after, quiet));
            }
            before = after;
        }
    }
}
