//! Forms, for browsers without JavaScript: the same steps as the JSON calls, each answered with the address of the page to
//! see next.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Form, FromRequest as _, Path, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{PIN, accept::wants_page, body, holds, json, orders, page, problem::Problem};
use crate::box_office::{
    best::BestWish,
    ids::HoldId,
    inventory::Acted,
    office::{Office, OfficeError},
    pages,
};

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Best,
    General,
}

#[derive(Debug, Deserialize)]
struct WishForm {
    kind: Kind,
    quantity: u32,
}

#[derive(Debug, Deserialize)]
struct OrderForm {
    hold: String,
}

/// Whether a browser sends a form.
pub fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The fields. Other sites can make a browser send a form, and browsers say when they do.
async fn fields<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    let from = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if from.is_some_and(|from| !matches!(from, "same-origin" | "none")) {
        let detail = "This form came from another site. Use the one on the page of the event.";
        return Err(Problem::new(StatusCode::FORBIDDEN, "other-site", detail));
    }
    let mut request = Request::new(Body::from(body::bytes(body).await?));
    *request.method_mut() = Method::POST;
    request.headers_mut().insert(header::CONTENT_TYPE, FORM);
    let form = Form::<T>::from_request(request, &()).await;
    form.map(|Form(fields)| fields)
        .map_err(|error| Problem::unprocessable("body-unfit", format!("The form does not fit: {error}.")))
}

/// `POST /events/{event}/holds`, as a form.
pub async fn hold(office: &Office, headers: &HeaderMap, body: Body) -> Result<Response, Problem> {
    let form: WishForm = fields(headers, body).await?;
    let wish = match form.kind {
        Kind::Best => holds::Wish::best(BestWish { quantity: form.quantity, together: false, rows: None }),
        Kind::General => holds::Wish::general(form.quantity),
    };
    let view = holds::take(office, wish, orders::visit(headers).as_deref(), None).await?;
    let mut response = see(&format!("/holds/{}", view.hold));
    response.headers_mut().insert(PIN, view.expires_in_seconds.into());
    Ok(response)
}

/// `POST /orders`, as a form. The hold is the key: who presses twice means one order.
pub async fn order(office: Arc<Office>, headers: &HeaderMap, body: Body) -> Result<Response, Problem> {
    let form: OrderForm = fields(headers, body).await?;
    let accepted = orders::place(office, format!("form-{}", form.hold), &form.hold, orders::visit(headers)).await?;
    let place = accepted.headers().get(header::LOCATION).and_then(|place| place.to_str().ok()).map(str::to_owned);
    let place = place.ok_or_else(|| OfficeError::Defect("an order without an address".to_owned()))?;
    let mut response = see(&place);
    if let Some(pin) = accepted.headers().get(PIN) {
        response.headers_mut().insert(PIN, pin.clone());
    }
    Ok(response)
}

/// `GET /holds/{hold}`.
pub async fn show(
    State(office): State<Arc<Office>>,
    Path(hold): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let hold: HoldId = hold.parse().map_err(|_| holds::unknown())?;
    let view = match office.held(&hold).await? {
        Ok(view) => view,
        Err(acted) => return Err(holds::refusal(acted)),
    };
    if wants_page(&headers) {
        let event = &office.config.event;
        return Ok(page::html(StatusCode::OK, &pages::hold_page(&view, &event.name, &event.currency)));
    }
    let text = serde_json::to_vec(&view).map_err(|error| OfficeError::Defect(error.to_string()))?;
    Ok(json(StatusCode::OK, text))
}

/// `POST /holds/{hold}`: gives it back, as forms cannot send DELETE.
pub async fn give_back(
    State(office): State<Arc<Office>>,
    Path(hold): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    struct Nothing {}
    let Nothing {} = fields(&headers, body).await?;
    let hold: HoldId = hold.parse().map_err(|_| holds::unknown())?;
    match office.cancel(&hold).await? {
        Acted::Done => Ok(see(&format!("/events/{}", office.config.event.id))),
        other => Err(holds::refusal(other)),
    }
}

/// 303.
fn see(place: &str) -> Response {
    let mut response = (StatusCode::SEE_OTHER, [(header::CACHE_CONTROL, "no-store")]).into_response();
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}
