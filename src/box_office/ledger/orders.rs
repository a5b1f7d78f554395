//! Orders: placed in one transaction with their items, their payment task and the client's stored answer.

use super::{
    Connection, End, Ledger, LedgerError, Mode, StoredAnswer, idempotency, locking,
    rows::{signed, status, status_word, unsigned},
    sql,
};
use crate::box_office::{
    ids::{HoldId, OrderId},
    inventory::Tickets,
    views::{OrderStatus, OrderView},
};

/// Whose keys of `POST /orders` these are. Two buyers may choose the same key: each visit has keys of its own, and so
/// have all those together who come without a gateway, which names the visit.
fn scope(visit: Option<&str>) -> String {
    visit.map_or_else(|| "orders".to_owned(), |visit| format!("orders {visit}"))
}

/// An order as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its name.
    pub id: OrderId,
    /// The hold it came from.
    pub hold: HoldId,
    /// The event's identifier.
    pub event: String,
    /// How far it is.
    pub status: OrderStatus,
    /// What was ordered.
    pub tickets: Tickets,
    /// What it costs in the currency's minor unit.
    pub amount_minor: u64,
    /// ISO 4217 code.
    pub currency: String,
    /// When it was placed, milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// The visit it was placed in, as the gateway in front names it; `None` without one.
    pub visit: Option<String>,
    /// Whether the inventory was told of the present status.
    pub is_told: bool,
}

impl Order {
    /// What the buyer sees.
    pub fn view(&self) -> OrderView {
        OrderView {
            order: self.id.as_str().to_owned(),
            event: self.event.clone(),
            status: self.status,
            seats: self.tickets.seats.clone(),
            quantity: self.tickets.quantity,
            amount_minor: self.amount_minor,
            currency: self.currency.clone(),
        }
    }
}

/// An order to place, with the key it came under and the answer to keep.
#[derive(Debug, Clone)]
pub struct NewOrder {
    /// The order; pending.
    pub order: Order,
    /// The client's idempotency key.
    pub key: String,
    /// What to answer, now and to every retry.
    pub answer: StoredAnswer,
    /// When to ask the provider if nothing was heard, milliseconds since the Unix epoch.
    pub poll_ms: u64,
}

/// What became of an order to place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceOutcome {
    /// Recorded, and its payment task with it.
    Placed,
    /// The key was used before in this visit, and this was answered.
    Answered(StoredAnswer),
    /// The hold already became an order.
    HoldUsed,
    /// Another order has one of the seats, or the last tickets.
    Taken,
}

macro_rules! select_orders {
    ($condition:literal) => {
        concat!(
            "SELECT o.id, o.hold, o.event, o.status, o.quantity, o.amount_minor, o.currency, o.created_ms, o.visit, o.inventory_due, \
             i.seat \
             FROM orders o LEFT JOIN order_items i ON i.order_id = o.id WHERE ",
            $condition,
            " ORDER BY o.id, i.position"
        )
    };
}

impl Ledger {
    /// What was answered under this key of `POST /orders` in this visit, if anything.
    pub async fn answered_order(&self, visit: Option<&str>, key: &str) -> Result<Option<StoredAnswer>, LedgerError> {
        self.stored_answer(scope(visit), key).await
    }

    /// What was answered under this key when this hold became an order, in whichever visit. A buyer whose session ended
    /// before the answer came is still told: whoever knows the hold and the key is the one.
    pub async fn answered_hold(&self, hold: &HoldId, key: &str) -> Result<Option<StoredAnswer>, LedgerError> {
        self.run(Mode::Look, (hold.clone(), key.to_owned()), |on, (hold, key)| {
            Box::pin(async move {
                let find = "SELECT visit FROM orders WHERE hold = $1";
                let order: Option<(Option<String>,)> = sql(find).bind(hold.as_str()).optional(on).await?;
                let Some((visit,)) = order else { return Ok(End::Rollback(None)) };
                Ok(End::Rollback(idempotency::stored(on, &scope(visit.as_deref()), key).await?))
            })
        })
        .await
    }

    /// Records a pending order, its items, its payment task and the answer, or nothing.
    pub async fn place(&self, new: NewOrder) -> Result<PlaceOutcome, LedgerError> {
        self.write(new, |tx, new| Box::pin(place(tx, new))).await
    }

    /// The order of this name.
    pub async fn order(&self, id: &OrderId) -> Result<Option<Order>, LedgerError> {
        self.run(Mode::Look, id.clone(), |on, id| Box::pin(async move { Ok(End::Rollback(find(on, id).await?)) })).await
    }

    /// Every order that has tickets: pending and confirmed ones.
    pub async fn orders_in_force(&self, event: &str) -> Result<Vec<Order>, LedgerError> {
        self.run(Mode::Look, event.to_owned(), |on, event| {
            Box::pin(async move {
                let find = select_orders!("o.event = $1 AND o.status IN ('pending', 'confirmed')");
                Ok(End::Rollback(fold(sql(find).bind(event).all(on).await?)?))
            })
        })
        .await
    }

    /// The orders that have any of these seats.
    pub async fn orders_with_seats(&self, event: &str, seats: &[String]) -> Result<Vec<Order>, LedgerError> {
        self.run(Mode::Look, (event.to_owned(), seats.to_vec()), |on, (event, seats)| {
            Box::pin(async move {
                let mut orders = Vec::new();
                for seat in seats {
                    let find = select_orders!(
                        "o.id IN (SELECT order_id FROM order_items WHERE event = $1 AND seat = $2 AND active = 1)"
                    );
                    orders.extend(fold(sql(find).bind(event).bind(seat).all(on).await?)?);
                }
                Ok(End::Rollback(orders))
            })
        })
        .await
    }

    /// Whether this hold became an order.
    pub async fn is_ordered(&self, hold: &HoldId) -> Result<bool, LedgerError> {
        self.run(Mode::Look, hold.clone(), |on, hold| {
            Box::pin(async move {
                let ask = "SELECT EXISTS (SELECT 1 FROM orders WHERE hold = $1)";
                Ok(End::Rollback(sql(ask).bind(hold.as_str()).value(on).await?))
            })
        })
        .await
    }

    /// The orders of these holds that ended without a sale, if the inventory was told so.
    pub async fn ended_of(&self, holds: Vec<HoldId>) -> Result<Vec<Order>, LedgerError> {
        self.run(Mode::Look, holds, |on, holds| {
            Box::pin(async move {
                let mut orders = Vec::new();
                for hold in holds {
                    let find = select_orders!(
                        "o.hold = $1 AND o.status IN ('refused', 'expired', 'refunded') AND o.inventory_due = 0"
                    );
                    orders.extend(fold(sql(find).bind(hold.as_str()).all(on).await?)?);
                }
                Ok(End::Rollback(orders))
            })
        })
        .await
    }

    /// Orders whose present status the inventory has not been told of.
    pub async fn orders_to_tell(&self, most: u32) -> Result<Vec<Order>, LedgerError> {
        self.run(Mode::Look, most, |on, most| {
            Box::pin(async move {
                let find =
                    select_orders!("o.id IN (SELECT id FROM orders WHERE inventory_due = 1 ORDER BY id LIMIT $1)");
                Ok(End::Rollback(fold(sql(find).bind(*most).all(on).await?)?))
            })
        })
        .await
    }

    /// Notes that the inventory knows these orders' statuses; one that has changed since stays due.
    pub async fn told(&self, mut orders: Vec<(OrderId, OrderStatus)>) -> Result<(), LedgerError> {
        orders.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        self.write(orders, |tx, orders| {
            Box::pin(async move {
                for (order, status) in orders {
                    sql("UPDATE orders SET inventory_due = 0 WHERE id = $1 AND status = $2")
                        .bind(order.as_str())
                        .bind(status_word(*status))
                        .run(tx)
                        .await?;
                }
                Ok(End::Commit(()))
            })
        })
        .await
    }

    /// Takes pending orders whose outcome is overdue, and puts off the next look at them until `next_ms`.
    pub async fn take_overdue(&self, now_ms: u64, next_ms: u64, most: u32) -> Result<Vec<Order>, LedgerError> {
        let ask = "SELECT EXISTS (SELECT 1 FROM orders WHERE status = 'pending' AND poll_ms <= $1)";
        if !self.is_due(ask, now_ms).await? {
            return Ok(Vec::new());
        }
        self.write((now_ms, next_ms, most), |tx, (now_ms, next_ms, most)| {
            Box::pin(take_overdue(tx, *now_ms, *next_ms, *most))
        })
        .await
    }
}

async fn take_overdue(
    tx: &mut Connection,
    now_ms: u64,
    next_ms: u64,
    most: u32,
) -> Result<End<Vec<Order>>, LedgerError> {
    let take = locking!(
        "WITH mine AS MATERIALIZED (SELECT id AS taken FROM orders \
         WHERE status = 'pending' AND poll_ms <= $2 ORDER BY poll_ms LIMIT $3",
        "FOR NO KEY UPDATE SKIP LOCKED",
        ") UPDATE orders SET poll_ms = $1 FROM mine WHERE id = taken RETURNING id"
    );
    let taken: Vec<(String,)> = sql(take).bind(signed(next_ms)).bind(signed(now_ms)).bind(most).all(tx).await?;
    let mut orders = Vec::with_capacity(taken.len());
    for (id,) in taken {
        let id = id.parse().map_err(|_| LedgerError::Unreadable("order id"))?;
        orders.extend(find(tx, &id).await?);
    }
    Ok(End::Commit(orders))
}

/// Each insertion that finds another's row waits until that is committed or undone.
async fn place(tx: &mut Connection, new: &NewOrder) -> Result<End<PlaceOutcome>, LedgerError> {
    let order = &new.order;
    if let Some(earlier) =
        idempotency::store(tx, &scope(order.visit.as_deref()), &new.key, &new.answer, order.created_ms).await?
    {
        return Ok(End::Rollback(PlaceOutcome::Answered(earlier)));
    }
    let inserted = sql(
        "INSERT INTO orders (id, event, hold, status, quantity, amount_minor, currency, created_ms, poll_ms, visit) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (hold) DO NOTHING",
    )
    .bind(order.id.as_str())
    .bind(&order.event)
    .bind(order.hold.as_str())
    .bind(status_word(order.status))
    .bind(order.tickets.quantity)
    .bind(signed(order.amount_minor))
    .bind(&order.currency)
    .bind(signed(order.created_ms))
    .bind(signed(new.poll_ms))
    .bind(&order.visit)
    .run(tx)
    .await?;
    if inserted == 0 {
        return Ok(End::Rollback(PlaceOutcome::HoldUsed));
    }
    if !insert_items(tx, order).await? {
        return Ok(End::Rollback(PlaceOutcome::Taken));
    }
    sql("INSERT INTO outbox (kind, subject, order_id, state, not_before_ms) VALUES ('charge', $1, $1, 'due', $2)")
        .bind(order.id.as_str())
        .bind(signed(order.created_ms))
        .run(tx)
        .await?;
    Ok(End::Commit(PlaceOutcome::Placed))
}

/// Whether the seats or tickets could be had.
async fn insert_items(tx: &mut Connection, order: &Order) -> Result<bool, LedgerError> {
    if order.tickets.seats.is_empty() {
        return take_tickets(tx, order).await;
    }
    let mut items: Vec<(i64, &String)> = (0..).zip(&order.tickets.seats).collect();
    // Two orders of the same seats wait for each other in one direction only.
    items.sort_by_key(|(_, seat)| *seat);
    for (position, seat) in items {
        let inserted = sql("INSERT INTO order_items (order_id, position, event, seat) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (event, seat) WHERE active = 1 DO NOTHING")
        .bind(order.id.as_str())
        .bind(position)
        .bind(&order.event)
        .bind(seat)
        .run(tx)
        .await?;
        if inserted == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes an order's general-admission tickets out of those not yet taken; whether there were enough.
pub(super) async fn take_tickets(tx: &mut Connection, order: &Order) -> Result<bool, LedgerError> {
    let taken = sql("UPDATE events SET tickets_taken = tickets_taken + $1 \
         WHERE id = $2 AND tickets_taken + $1 <= tickets_total")
    .bind(order.tickets.quantity)
    .bind(&order.event)
    .run(tx)
    .await?;
    Ok(taken == 1)
}

pub(super) async fn find(on: &mut Connection, id: &OrderId) -> Result<Option<Order>, LedgerError> {
    Ok(fold(sql(select_orders!("o.id = $1")).bind(id.as_str()).all(on).await?)?.pop())
}

/// The order as it stays until the transaction ends. Whoever changes an order starts with this.
pub(super) async fn lock(tx: &mut Connection, id: &OrderId) -> Result<Option<Order>, LedgerError> {
    let find = locking!(select_orders!("o.id = $1"), "FOR NO KEY UPDATE OF o", "");
    Ok(fold(sql(find).bind(id.as_str()).all(tx).await?)?.pop())
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    hold: String,
    event: String,
    status: String,
    quantity: i64,
    amount_minor: i64,
    currency: String,
    created_ms: i64,
    visit: Option<String>,
    inventory_due: i64,
    seat: Option<String>,
}

/// One order per run of rows with the same id, its seats in their rows' order.
fn fold(rows: Vec<Row>) -> Result<Vec<Order>, LedgerError> {
    let mut orders: Vec<Order> = Vec::new();
    for row in rows {
        if let (Some(last), Some(seat)) = (orders.last_mut(), &row.seat)
            && last.id.as_str() == row.id
        {
            last.tickets.seats.push(seat.clone());
            continue;
        }
        orders.push(Order {
            id: row.id.parse().map_err(|_| LedgerError::Unreadable("order id"))?,
            hold: row.hold.parse().map_err(|_| LedgerError::Unreadable("hold id"))?,
            event: row.event,
            status: status(&row.status)?,
            tickets: Tickets {
                seats: row.seat.into_iter().collect(),
                quantity: u32::try_from(row.quantity).map_err(|_| LedgerError::Unreadable("quantity"))?,
            },
            amount_minor: unsigned(row.amount_minor)?,
            currency: row.currency,
            created_ms: unsigned(row.created_ms)?,
            visit: row.visit,
            is_told: row.inventory_due == 0,
        });
    }
    Ok(orders)
}
