//! The provider's webhooks.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};

use super::{body, problem::Problem};
use crate::box_office::{
    ledger::Settled,
    office::{Office, OfficeError},
    webhooks::{self, Message, SignatureError},
};

/// `POST /webhooks/payments`. Success only once the effect is durable: the provider then stops telling us.
pub async fn receive(State(office): State<Arc<Office>>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let body = body::bytes(body).await?;
    let mut signatures = headers.get_all("stanchion-pay-signature").iter();
    let (Some(signature), None) = (signatures.next().and_then(|value| value.to_str().ok()), signatures.next()) else {
        return Err(unsigned(SignatureError::Malformed));
    };
    let secrets = &office.config.provider.webhook_secrets;
    webhooks::verify(signature, &body, secrets, office.clock.unix_seconds()).map_err(unsigned)?;
    let message = webhooks::read(&body)
        .map_err(|error| Problem::unprocessable("event-unfit", format!("Not an event we know: {error}.")))?;
    let notice = match message {
        Message::Notice(notice) => notice,
        Message::Other => return Ok(StatusCode::NO_CONTENT.into_response()),
        Message::NotOurs => return Err(unknown_order()),
    };
    let settled = tokio::spawn(async move { office.settle(notice).await }).await;
    match settled.map_err(|error| OfficeError::Defect(error.to_string()))?? {
        // It may be on its way: the webhook can overtake the commit that it is about.
        Settled::UnknownOrder => Err(unknown_order()),
        _ => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

fn unsigned(error: SignatureError) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "signature", format!("Not believed: {error}."))
}

fn unknown_order() -> Problem {
    Problem::conflict("unknown-order", "There is no such order yet. Send this again later.").retry_after(1)
}
