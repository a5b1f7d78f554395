//! The event's page: choose seats or a number of tickets, hold them, pay.

use askama::Template;

use super::{PageHtml, asset_url, money::Currency, page, row_and_number};
use crate::box_office::views::{EventView, SeatState, SeatView};

/// The page of an event.
pub fn event_page(event: &EventView) -> PageHtml {
    let currency = Currency::of(&event.currency);
    page(
        View {
            event,
            price: currency.show(event.price_minor),
            currency,
            rows: rows(&event.seats.map),
            free: event.seats.free + event.general_admission.free,
            total: event.seats.total + event.general_admission.total,
            css: asset_url("shop.css"),
            js: asset_url("shop.js"),
        }
        .render(),
    )
}

#[derive(Template)]
#[template(path = "box_office/event.html")]
struct View<'a> {
    event: &'a EventView,
    price: String,
    currency: Currency,
    rows: Vec<Row<'a>>,
    free: u32,
    total: u32,
    css: String,
    js: String,
}

struct Row<'a> {
    name: &'a str,
    seats: Vec<Seat<'a>>,
}

struct Seat<'a> {
    id: &'a str,
    number: &'a str,
    /// Our own markup, not escaped. A free seat, the usual case, adds nothing.
    state: &'static str,
}

/// Neighbouring seats with the same letters make a row.
fn rows(map: &[SeatView]) -> Vec<Row<'_>> {
    map.chunk_by(|left, right| row_and_number(&left.seat).0 == row_and_number(&right.seat).0)
        .map(|seats| Row {
            name: seats.first().map_or("", |first| row_and_number(&first.seat).0),
            seats: seats.iter().map(seat).collect(),
        })
        .collect()
}

fn seat(view: &SeatView) -> Seat<'_> {
    let state = match view.state {
        SeatState::Free => "",
        SeatState::Held => " data-s=\"held\"",
        SeatState::Sold => " data-s=\"sold\"",
    };
    Seat { id: &view.seat, number: row_and_number(&view.seat).1, state }
}
