//! A hold's page, for browsers without JavaScript: the event's page shows the same in place.

use askama::Template;

use super::{PageHtml, asset_url, money::Currency, page, row_and_number};
use crate::box_office::views::HoldView;

/// The page of a live hold for the event of this name.
pub fn hold_page(hold: &HoldView, event_name: &str, currency: &str) -> PageHtml {
    let minutes = hold.expires_in_seconds / 60;
    page(
        View {
            hold,
            event_name,
            left: match minutes {
                0 => "less than a minute".to_owned(),
                1 => "1 minute".to_owned(),
                _ => format!("{minutes} minutes"),
            },
            // 2030-01-01T20:15:03.123Z
            until: hold.expires_at.get(11..19).unwrap_or_default(),
            seats: hold.seats.iter().map(|seat| row_and_number(seat)).collect(),
            amount: Currency::of(currency).show(hold.amount_minor),
            css: asset_url("shop.css"),
        }
        .render(),
    )
}

#[derive(Template)]
#[template(path = "box_office/hold.html")]
struct View<'a> {
    hold: &'a HoldView,
    event_name: &'a str,
    left: String,
    until: &'a str,
    seats: Vec<(&'a str, &'a str)>,
    amount: String,
    css: String,
}
