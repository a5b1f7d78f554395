//! The box office's HTTP manners: problems, pages, caching, what the gateway reads.

use axum::body::Body;
use serde_json::json;
use stanchion::box_office::views::EventView;

use crate::support::box_office::{Place, Shop, ask, event, eventually, on_both_databases};

on_both_databases! {
    everything_that_goes_wrong_is_a_problem_document
    the_event_is_json_for_programs_and_a_page_for_people
    the_map_follows_within_a_moment_and_says_when_all_is_sold
    what_cannot_work_is_said_before_anything_opens
}

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
const JSON: (&str, &str) = ("content-type", "application/json");

async fn everything_that_goes_wrong_is_a_problem_document(place: Place) {
    let shop = Shop::open(&place, |_| {}).await;
    let big = format!(r#"{{"seats":["{}"]}}"#, "A".repeat(70_000));
    let key = ("idempotency-key", "k");
    let holds = "/events/demo/holds";
    for (method, path, headers, body, status, problem) in [
        ("GET", "/nowhere", vec![], "", 404, "not-found"),
        ("GET", "/events/other", vec![], "", 404, "not-found"),
        ("POST", "/events/other/holds", vec![JSON], "{}", 404, "not-found"),
        ("GET", "/orders/o_1", vec![], "", 404, "not-found"),
        ("GET", "/orders/%ff", vec![], "", 400, "about-the-request"),
        ("DELETE", "/holds/h_1", vec![], "", 404, "not-found"),
        ("DELETE", "/holds/%2e%2e", vec![], "", 404, "not-found"),
        ("DELETE", "/orders", vec![], "", 405, "method-not-allowed"),
        ("PUT", "/events/demo", vec![], "", 405, "method-not-allowed"),
        ("POST", holds, vec![], "{}", 415, "not-json"),
        ("POST", holds, vec![("content-type", "text/plain")], "{}", 415, "not-json"),
        ("POST", holds, vec![JSON], "", 400, "json-malformed"),
        ("POST", holds, vec![JSON], "{", 400, "json-malformed"),
        ("POST", holds, vec![JSON], "\u{feff}{}", 400, "json-malformed"),
        ("POST", holds, vec![JSON], &big, 413, "body-too-large"),
        ("POST", "/orders", vec![JSON, key], "{}", 422, "body-unfit"),
        ("POST", "/orders", vec![JSON, key], r#"{"hold":"../x"}"#, 404, "not-found"),
        ("POST", "/webhooks/payments", vec![], &big, 413, "body-too-large"),
        ("GET", "/webhooks/payments", vec![], "", 405, "method-not-allowed"),
        ("GET", "/box-office/assets/none.css", vec![], "", 404, "not-found"),
    ] {
        let reply = shop.send(method, path, &headers, body.to_owned()).await;
        assert_eq!(reply.status.as_u16(), status, "{method} {path}: {}", reply.text);
        assert_eq!(reply.problem(), problem, "{method} {path}");
        assert_eq!(reply.headers["cache-control"], "no-store", "{method} {path}");
        if status == 405 {
            assert!(reply.headers.contains_key("allow"), "{method} {path}");
        }
    }
    let page = shop.send("GET", "/nowhere", &[BROWSER], "").await.expect(404);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert!(page.headers.contains_key("content-security-policy"));
    assert_eq!(shop.admin_get("/events/other/audit").await.expect(404).problem(), "not-found");
    shop.get("/events/demo/audit").await.expect(404);
}

async fn the_event_is_json_for_programs_and_a_page_for_people(place: Place) {
    let shop = Shop::open(&place, |_| {}).await;
    let home = shop.get("/").await.expect(303);
    assert_eq!(home.headers["location"], "/events/demo");

    let program = shop.get("/events/demo").await.expect(200);
    assert_eq!(program.headers["content-type"], "application/json");
    assert_eq!(program.headers["cache-control"], "no-store");
    assert!(!program.headers.contains_key("stanchion-sold-out"));
    let view: EventView = serde_json::from_str(&program.text).unwrap();
    assert_eq!((view.id.as_str(), view.price_minor, view.on_sale), ("demo", 4500, true));
    assert_eq!((view.seats.total, view.seats.free, view.seats.map.len()), (80, 80, 80));
    assert_eq!((view.general_admission.total, view.general_admission.free), (10, 10));
    assert_eq!(program.body["seats"]["map"][41], json!({"seat": "B2", "state": "free"}));

    let person = shop.send("GET", "/events/demo", &[BROWSER], "").await.expect(200);
    assert_eq!(person.headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(person.headers["cache-control"], "no-store");
    assert!(person.text.contains("Demo night"));
    let asset = person.text.split('"').find(|part| part.starts_with("/box-office/assets/")).unwrap().to_owned();
    let plain = shop.get(&asset).await.expect(200);
    assert!(plain.headers["cache-control"].to_str().unwrap().contains("immutable"));
    let etag = plain.headers["etag"].to_str().unwrap().to_owned();
    shop.send("GET", &asset, &[("if-none-match", &etag)], "").await.expect(304);
}

async fn the_map_follows_within_a_moment_and_says_when_all_is_sold(place: Place) {
    let shop = Shop::open(&place, |config| (config.event.seats, config.event.general_admission) = (1, 0)).await;
    assert_eq!(shop.get("/events/demo").await.body["seats"]["map"][0]["state"], "free");
    let (order, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    eventually("the seat shows as held", || async {
        let reply = shop.get("/events/demo").await.expect(200);
        assert!(!reply.headers.contains_key("stanchion-sold-out"));
        (reply.body["seats"]["map"][0]["state"] == "held").then_some(())
    })
    .await;

    shop.webhook(&event("evt_1", "charge.captured", &order, &charge)).await.expect(204);

    let sold = eventually("the event is sold out", || async {
        let reply = shop.get("/events/demo").await.expect(200);
        reply.headers.contains_key("stanchion-sold-out").then_some(reply)
    })
    .await;
    assert_eq!(sold.headers["stanchion-sold-out"], "1");
    assert_eq!((&sold.body["on_sale"], &sold.body["seats"]["free"]), (&json!(false), &json!(0)));
    assert_eq!(sold.body["seats"]["map"][0]["state"], "sold");
    let page = shop.send("GET", &format!("/orders/{order}"), &[BROWSER], "").await.expect(200);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(page.headers["stanchion-command"], "release");
    assert_eq!(page.headers["stanchion-sold-out"], "1", "the next in line must not be let in to find nothing");
}

async fn what_cannot_work_is_said_before_anything_opens(place: Place) {
    use std::sync::Arc;

    use stanchion::{box_office::BoxOffice, clock::SystemClock, store::in_process::InProcess};
    let shop = Shop::open(&place, |_| {}).await;
    let open = |config| {
        let engine = Arc::new(InProcess::new(Arc::new(SystemClock)));
        async { BoxOffice::open(config, engine, Arc::new(SystemClock)).await.unwrap_err().to_string() }
    };
    let mut config = shop.config.clone();
    config.event.id = "No Such Id".into();
    config.event.currency = "euro".into();
    config.provider.url = "https://example.com/api".into();
    config.provider.webhook_secrets.clear();
    let said = open(config).await;
    for part in ["event.id", "event.currency", "provider.url", "webhook_secrets"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let mut config = shop.config.clone();
    config.database = "/nonexistent/folder/ledger.db".into();
    assert!(open(config).await.contains("folder must exist"));
    let mut config = shop.config.clone();
    config.database = "mysql://user:pa55word@host/db".into();
    let said = open(config).await;
    assert!(said.contains("use a file's path") && !said.contains("pa55word"), "{said}");

    shop.ordered(json!({"quantity": 3})).await;
    let mut config = shop.config.clone();
    config.event.general_admission = 2;
    assert!(open(config).await.contains("3 are already taken"));
    shop.ordered(json!({"seats": ["B40"]})).await;
    let mut config = shop.config.clone();
    config.event.seats = 79;
    assert!(open(config).await.contains("seat B40 is ordered"));
    assert!(!format!("{:?}", shop.config).contains("the-key"));
}

/// The forms of browsers without JavaScript, step by step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_hold_give_back_and_order_once() {
    let shop = Shop::open(&Place::embedded(), |_| {}).await;
    let form = async |path: &str, fields: &str, from: &str| {
        let headers =
            [("content-type", "application/x-www-form-urlencoded"), ("accept", "text/html"), ("sec-fetch-site", from)];
        shop.send("POST", path, &headers, fields.to_owned()).await
    };
    let wish = "kind=best&quantity=2";
    form("/events/demo/holds", wish, "cross-site").await.expect(403);
    form("/events/demo/holds", "kind=best&quantity=two", "same-origin").await.expect(422);
    form("/events/demo/holds", "kind=best&quantity=11", "same-origin").await.expect(422);
    assert_eq!(shop.audit().await.held, 0);

    let held = form("/events/demo/holds", wish, "same-origin").await.expect(303);
    assert_eq!(held.headers["stanchion-pin"], "600");
    let place = held.headers["location"].to_str().unwrap().to_owned();
    let seen = shop.get(&place).await.expect(200);
    assert_eq!((&seen.body["seats"], &seen.body["amount_minor"]), (&json!(["A20", "A21"]), &json!(9000)));
    let page = shop.send("GET", &place, &[("accept", "text/html")], "").await.expect(200);
    assert!(page.text.contains("Row A, seat 20") && page.text.contains("€90.00"), "{}", page.text);
    form(&place, "", "cross-site").await.expect(403);
    let back = form(&place, "", "same-origin").await.expect(303);
    assert_eq!(back.headers["location"], "/events/demo");
    form(&place, "", "same-origin").await.expect(410);
    shop.get(&place).await.expect(410);

    let taken = form("/events/demo/holds", "kind=general&quantity=2", "same-origin").await.expect(303);
    let general = taken.headers["location"].to_str().unwrap().strip_prefix("/holds/").unwrap().to_owned();
    let order = format!("hold={general}");
    form("/orders", &order, "same-site").await.expect(403);
    let first = form("/orders", &order, "same-origin").await.expect(303);
    let again = form("/orders", &order, "same-origin").await.expect(303);
    assert_eq!(first.headers["location"], again.headers["location"], "pressed twice, ordered once");
    assert_eq!(shop.audit().await.orders.pending, 1);
    shop.get(&format!("/holds/{general}")).await.expect(410);
    shop.get(&format!("/holds/h_{}", "0".repeat(32))).await.expect(404);
}

/// Prometheus text of what the audit says, readable line by line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn monitoring_reads_what_the_audit_says() {
    let shop = Shop::open(&Place::embedded(), |_| {}).await;
    let (order, charge) = shop.ordered(json!({"seats": ["A1"]})).await;
    shop.webhook(&event("evt_1", "charge.captured", &order, &charge)).await.expect(204);
    shop.audit_when("it is sold", |audit| audit.sold == 1 && audit.tasks_due == 0).await;
    shop.held(json!({"quantity": 2})).await;
    assert!(shop.office.reconcile().await.unwrap());

    let reply = ask(&shop.office.metrics_router(), "GET", "/metrics", &[], Body::empty()).await.expect(200);

    assert_eq!(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    for line in [
        "# TYPE stanchion_tickets gauge",
        "stanchion_tickets{event=\"demo\",state=\"free\"} 87",
        "stanchion_tickets{event=\"demo\",state=\"held\"} 2",
        "stanchion_tickets{event=\"demo\",state=\"sold\"} 1",
        "stanchion_orders{event=\"demo\",status=\"confirmed\"} 1",
        "stanchion_charges_total{event=\"demo\"} 1",
        "stanchion_outbox_due{event=\"demo\"} 0",
        "stanchion_outbox_parked{event=\"demo\"} 0",
        "stanchion_guarantee_holds{event=\"demo\",guarantee=\"g9_money\"} 1",
        "stanchion_reconciler_has_lease{event=\"demo\"} 1",
        "stanchion_reconciler_runs_total{event=\"demo\"} 1",
    ] {
        assert!(reply.text.lines().any(|told| told == line), "{line} is not in\n{}", reply.text);
    }
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        name.starts_with("stanchion_") && name.ends_with('}') && value.parse::<i64>().is_ok()
    };
    let is_fine = |line: &str| line.starts_with("# HELP ") || line.starts_with("# TYPE ") || sample(line);
    assert!(reply.text.ends_with('\n') && reply.text.lines().all(is_fine), "{}", reply.text);
    // Names of orders and holds are rights.
    assert!(!reply.text.contains(&order));
}
