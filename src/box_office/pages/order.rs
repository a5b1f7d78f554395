//! The order's page: one document that can show every status, because the answer that says how the order ended also
//! ends the buyer's visit, and the script must not need another page after it.

use askama::Template;

use super::{PageHtml, asset_url, money::Currency, page, row_and_number};
use crate::box_office::views::{OrderStatus, OrderView};

/// The page of an order for the event of this name.
pub fn order_page(order: &OrderView, event_name: &str) -> PageHtml {
    page(
        View {
            order,
            event_name,
            status: name(order.status),
            amount: Currency::of(&order.currency).show(order.amount_minor),
            tickets: tickets(order),
            css: asset_url("shop.css"),
            js: asset_url("order.js"),
        }
        .render(),
    )
}

#[derive(Template)]
#[template(path = "box_office/order.html")]
struct View<'a> {
    order: &'a OrderView,
    event_name: &'a str,
    status: &'static str,
    amount: String,
    tickets: Vec<Ticket<'a>>,
    css: String,
    js: String,
}

impl View<'_> {
    fn is(&self, statuses: &str) -> bool {
        statuses.split(' ').any(|status| status == self.status)
    }

    /// Ends the start tag of what belongs to these statuses. What is not shown is a comment inside an element that is
    /// hidden, because browsers that show text only know nothing of `hidden`; the script takes the comments away.
    /// Markup of our own, so not escaped.
    fn open(&self, statuses: &str) -> &'static str {
        if self.is(statuses) { ">" } else { " hidden><!--" }
    }

    /// Comes before the end tag of what [`View::open`] began.
    fn close(&self, statuses: &str) -> &'static str {
        if self.is(statuses) { "" } else { "-->" }
    }
}

struct Ticket<'a> {
    number: usize,
    /// Row and seat; `None` for general admission.
    seat: Option<(&'a str, &'a str)>,
}

fn tickets(order: &OrderView) -> Vec<Ticket<'_>> {
    if order.seats.is_empty() {
        (1..=order.quantity as usize).map(|number| Ticket { number, seat: None }).collect()
    } else {
        let seats = order.seats.iter().map(|seat| row_and_number(seat));
        (1..).zip(seats).map(|(number, seat)| Ticket { number, seat: Some(seat) }).collect()
    }
}

const fn name(status: OrderStatus) -> &'static str {
    match status {
        OrderStatus::Pending => "pending",
        OrderStatus::Confirmed => "confirmed",
        OrderStatus::Refused => "refused",
        OrderStatus::Expired => "expired",
        OrderStatus::Refunded => "refunded",
    }
}
