//! The process dies between any two durable steps of an order, is started again, and the order ends as if nothing had
//! been: one charge, one sale, nothing left over.
//!
//! No point is skipped: each step that leaves the process is met twice, once when it was not done and once when it was
//! and the process did not get to hear so.

mod rig;
mod trap;

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use serde_json::json;

use self::{
    rig::{Rig, Servers},
    trap::{
        Moment,
        Step::{self, Call, Commit, Script},
    },
};
use crate::support::fake_provider::Behaviour;

/// Stories told at the same time.
const WIDTH: usize = 6;
/// The outcome, by webhook.
const WEBHOOK: Step = Commit("INSERT INTO webhook_events");
/// What the inventory was told.
const TOLD: Step = Commit("SET inventory_due = 0");
const CLAIM: Step = Commit("attempts = attempts + 1");

type Point = (Step, Moment);

/// Tells a story for every point.
async fn at_every_point<F: Future<Output = ()> + Send + 'static>(
    steps: &[Step],
    story: impl Fn(Arc<Servers>, Point) -> F,
) {
    on_every_point(Servers::start(false), steps, story).await;
}

/// The same where the servers are given.
async fn on_every_point<F: Future<Output = ()> + Send + 'static>(
    servers: Arc<Servers>,
    steps: &[Step],
    story: impl Fn(Arc<Servers>, Point) -> F,
) {
    let points = steps.iter().flat_map(|step| [(*step, Moment::Before), (*step, Moment::After)]);
    stream::iter(points)
        .map(|point| tokio::spawn(story(Arc::clone(&servers), point)))
        .buffer_unordered(WIDTH)
        .for_each(async |told| told.unwrap())
        .await;
}

/// D03, D13: from the hold to the ticket, the outcome told by webhook.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_charged_and_sold_once_wherever_the_process_dies() {
    let steps = [
        Script("hold_seats-n.lua"),
        Script("pay_hold-n.lua"),
        Commit("INSERT INTO orders"),
        CLAIM,
        Call("POST /charges"),
        Commit("SET state = 'done' WHERE kind = $1 AND subject = $2 AND state = 'due'"),
        WEBHOOK,
        Script("sell-n.lua"),
        TOLD,
    ];
    at_every_point(&steps, async |servers, point| {
        // What nobody ordered in time goes back; all else may take its time.
        let hold_for = if point.0 == Script("hold_seats-n.lua") { "2s" } else { "10m" };
        let rig = Rig::start(&servers, point, &["--hold-for", hold_for, "--poll-after", "1m"]).await;
        rig.trap.arm();
        buy(&rig, Tell::ByWebhook).await;
    })
    .await;
}

/// D13, D14: no webhook comes, and the provider is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_nobody_told_of_is_asked_for_wherever_the_process_dies() {
    let steps = [
        Commit("SET poll_ms = $1"),
        Script("rehold-n.lua"),
        Call("GET /charges"),
        Commit("INSERT INTO payments"),
        Script("sell-n.lua"),
    ];
    at_every_point(&steps, async |servers, point| {
        let rig = Rig::start(&servers, point, &["--hold-for", "10m", "--poll-after", "300ms"]).await;
        rig.trap.arm();
        buy(&rig, Tell::Nobody).await;
    })
    .await;
}

/// The same orders with the ledger in a file: it dies at every step that leaves the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_in_a_file_settles_the_order_wherever_the_process_dies() {
    let steps = [
        (Script("hold_seats-n.lua"), Tell::ByWebhook),
        (Script("pay_hold-n.lua"), Tell::ByWebhook),
        (Call("POST /charges"), Tell::ByWebhook),
        (Script("sell-n.lua"), Tell::ByWebhook),
        (Script("rehold-n.lua"), Tell::Nobody),
        (Call("GET /charges"), Tell::Nobody),
    ];
    let tell_at = move |point: Point| steps.iter().find(|(step, _)| *step == point.0).map(|(_, tell)| *tell).unwrap();
    on_every_point(Servers::start(true), &steps.map(|(step, _)| step), move |servers, point| async move {
        let tell = tell_at(point);
        let hold_for = if point.0 == Script("hold_seats-n.lua") { "2s" } else { "10m" };
        let poll_after = if tell == Tell::Nobody { "300ms" } else { "1m" };
        let rig = Rig::start(&servers, point, &["--hold-for", hold_for, "--poll-after", poll_after]).await;
        rig.trap.arm();
        buy(&rig, tell).await;
    })
    .await;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tell {
    ByWebhook,
    Nobody,
}

/// A buyer who tries again whatever happens, and finds one seat, one order, one charge.
async fn buy(rig: &Rig, tell: Tell) {
    let hold = rig.held(&json!({"seats": ["A1"]})).await;
    follow(rig, &hold, tell).await;
}

async fn follow(rig: &Rig, hold: &str, tell: Tell) {
    let (order, _) = rig.ordered("the-key", hold).await;
    let charge = rig.charge(&order).await;
    rig.provider.decide(&order, "captured");
    if tell == Tell::ByWebhook {
        rig.tell("charge.captured", &order, &charge, 1).await;
    }
    rig.becomes(&order, "confirmed").await;
    let audit = rig.settled().await;
    assert_eq!((audit.sold, audit.orders.confirmed, audit.captures, audit.refunds), (1, 1, 1, 0), "{audit:?}");
    assert_eq!(rig.provider.charges().len(), 1);
    assert_eq!(rig.ordered("the-key", hold).await, (order, true));
    assert_eq!(rig.try_hold(&json!({"seats": ["A1"]})).await.status, 409);
}

/// The provider is out of order at first: the try that failed is noted, and made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_failed_is_made_again_wherever_the_process_dies() {
    at_every_point(&[Commit("lease_until_ms = 0, last_error")], async |servers, point| {
        let rig = Rig::start(&servers, point, &["--hold-for", "10m", "--poll-after", "1m"]).await;
        rig.provider.behave(Behaviour::TakeAndFail);
        rig.trap.arm();
        let hold = rig.held(&json!({"seats": ["A1"]})).await;
        rig.ordered("the-key", &hold).await;
        rig.killed().await;
        rig.provider.behave(Behaviour::Take);
        let before = rig.provider.requests();
        rig.until("the call is made again", || rig.provider.requests() > before).await;
        follow(&rig, &hold, Tell::ByWebhook).await;
    })
    .await;
}

/// How an order comes to nothing.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The card is declined.
    Declined,
    /// The provider never decides, until the time to pay is over.
    GivenUp,
    /// The provider refuses to charge at all.
    Impossible,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_tickets_go_back_once_wherever_the_process_dies() {
    let steps = [WEBHOOK, Script("release_hold-n.lua"), TOLD];
    at_every_point(&steps, async |servers, point| go_back(&servers, point, End::Declined).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_of_an_order_that_was_given_up_go_back_once_wherever_the_process_dies() {
    let steps = [Commit("the order expired"), Script("release_hold-n.lua"), TOLD];
    at_every_point(&steps, async |servers, point| go_back(&servers, point, End::GivenUp).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_of_a_charge_that_cannot_be_made_go_back_once_wherever_the_process_dies() {
    let steps = [Commit("SET state = 'dead', last_error = $1"), Script("release_hold-n.lua"), TOLD];
    at_every_point(&steps, async |servers, point| go_back(&servers, point, End::Impossible).await).await;
}

/// D04. General admission is counted, so that going back twice would show.
async fn go_back(servers: &Servers, point: Point, end: End) {
    let patience = if matches!(end, End::GivenUp) { ["300ms", "1s"] } else { ["1m", "15m"] };
    let args = ["--hold-for", "10m", "--poll-after", patience[0], "--payment-ttl", patience[1]];
    let rig = Rig::start(servers, point, &args).await;
    if matches!(end, End::Impossible) {
        rig.provider.behave(Behaviour::Fail(403));
    }
    rig.trap.arm();
    let hold = rig.held(&json!({"quantity": 3})).await;
    let (order, _) = rig.ordered("the-key", &hold).await;
    let status = match end {
        End::Declined => {
            let charge = rig.charge(&order).await;
            rig.provider.decide(&order, "declined");
            rig.tell("charge.declined", &order, &charge, 3).await;
            "refused"
        }
        End::GivenUp => "expired",
        End::Impossible => "refused",
    };
    rig.becomes(&order, status).await;
    let audit = rig.settled().await;
    assert_eq!((audit.free, audit.orders.confirmed, audit.captures), (20, 0, 0), "{audit:?}");
    // Ten are there to be had, and no eleventh.
    rig.held(&json!({"quantity": 10})).await;
    assert_eq!(rig.try_hold(&json!({"quantity": 1})).await.status, 409);
    assert_eq!(rig.ordered("the-key", &hold).await, (order, true));
}

/// The money comes when the seat is another's by now: it goes back, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_comes_too_late_goes_back_once_wherever_the_process_dies() {
    let steps = [
        Commit("VALUES ('refund'"),
        CLAIM,
        Call("POST /refunds"),
        // The status that the payment gets when the provider has paid it back.
        Commit("refunded"),
        Script("release_hold-n.lua"),
        TOLD,
    ];
    at_every_point(&steps, async |servers, point| {
        let args = ["--hold-for", "10m", "--poll-after", "300ms", "--payment-ttl", "3s"];
        let rig = Rig::start(&servers, point, &args).await;
        let seat = json!({"seats": ["A1"]});
        let hold = rig.held(&seat).await;
        let (late, _) = rig.ordered("late", &hold).await;
        let charge = rig.charge(&late).await;
        rig.becomes(&late, "expired").await;
        let prompt = buy_in_time(&rig, &seat).await;

        rig.trap.arm();
        rig.provider.decide(&late, "captured");
        rig.tell("charge.captured", &late, &charge, 1).await;
        rig.becomes(&late, "refunded").await;
        let audit = rig.settled().await;
        assert_eq!((audit.sold, audit.orders.confirmed, audit.orders.refunded), (1, 1, 1), "{audit:?}");
        assert_eq!((audit.captures, audit.refunds), (2, 1), "{audit:?}");
        let refunds = rig.provider.refunds();
        assert_eq!(refunds.len(), 1, "{refunds:?}");
        assert_eq!(refunds[0]["charge"], charge.as_str());
        assert_eq!(rig.status(&prompt).await, "confirmed");
        assert_eq!(rig.ordered("late", &hold).await, (late, true));
    })
    .await;
}

/// Buys what others gave up. Whoever is too slow on a busy machine begins again.
async fn buy_in_time(rig: &Rig, wish: &serde_json::Value) -> String {
    loop {
        let hold = rig.held(wish).await;
        let (order, _) = rig.ordered(&format!("key-{hold}"), &hold).await;
        while rig.charge_now(&order).is_none() && rig.status(&order).await == "pending" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let Some(charge) = rig.charge_now(&order) else { continue };
        rig.provider.decide(&order, "captured");
        rig.tell("charge.captured", &order, &charge, 1).await;
        rig.becomes(&order, "confirmed").await;
        return order;
    }
}
