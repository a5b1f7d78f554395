//! Webhooks as a stranger would send them who overhears real ones and has no secret.

use super::{
    records::{Event, new_id},
    signature::Signer,
};

/// Long enough ago for everybody.
const STALE_SECONDS: u64 = 3_600;

/// One forged webhook.
#[derive(Debug)]
pub(super) struct Forgery {
    pub(super) signature: Option<String>,
    pub(super) body: Vec<u8>,
}

/// What a forger makes of the news of `event`. None of it may be believed.
pub(super) fn forgeries(event: &Event, signer: &Signer, now_seconds: u64) -> Vec<Forgery> {
    let body = event.to_json();
    let lie = lie_about(event).to_json();
    let overheard = signer.sign(now_seconds.saturating_sub(STALE_SECONDS), &body);
    let tag = overheard.split_once(',').map_or("", |(_, tag)| tag);
    [
        (None, lie.clone()),
        // Signed with a secret of the forger's own.
        (Some(Signer::new("a secret of the forger's own").sign(now_seconds, &lie)), lie.clone()),
        // Overheard: the body altered, sent again as it is, sent again with a new time.
        (Some(signer.sign(now_seconds, &body)), lie),
        (Some(overheard.clone()), body.clone()),
        (Some(format!("t={now_seconds},{tag}")), body),
    ]
    .into_iter()
    .map(|(signature, body)| Forgery { signature, body })
    .collect()
}

/// The opposite, for less money.
fn lie_about(event: &Event) -> Event {
    let kind = if event.kind == "charge.captured" { "charge.declined" } else { "charge.captured" };
    Event { id: new_id("evt"), kind, amount_minor: 1, ..event.clone() }
}
