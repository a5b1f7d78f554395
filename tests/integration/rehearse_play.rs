//! A rehearsal against a sound system holds; against a system that breaks one guarantee, it says which.

#[path = "rehearse_play/fake.rs"]
mod fake;

use std::time::Duration;

use crate::support::redis_server::RedisServer;
use fake::{Fake, Fault};
use stanchion::rehearse::{
    Arrivals, Mix, Plan, RehearseError, Report, play_showing, progress::Silent, verdict::Judgement,
};

const USERS: u32 = 40;

fn plan(url: &str) -> Plan {
    Plan {
        arrivals: Arrivals::Ramp(Duration::from_millis(500)),
        admin: Some(url.parse().unwrap()),
        mix: Mix { five_tabs: 0.15, f5: 0.15, leave_early: 0.0, abandon_hold: 0.0 },
        deadline: Duration::from_mins(1),
        think: Duration::from_millis(200)..=Duration::from_millis(400),
        ..Plan::new(url.parse().unwrap(), USERS)
    }
}

async fn rehearse(fault: Fault) -> Report {
    let fake = Fake::start(fault).await;
    play_showing(plan(&fake.url), &Silent).await.unwrap()
}

/// What is broken: the guarantee, or the words of what has no number.
fn broken(report: &Report) -> Vec<&'static str> {
    judged(report, Judgement::Broken)
}

fn judged(report: &Report, judgement: Judgement) -> Vec<&'static str> {
    report
        .verdict
        .iter()
        .filter(|row| row.judgement == judgement)
        .map(|row| if row.guarantee.is_empty() { row.what } else { row.guarantee })
        .collect()
}

async fn assert_notices(fault: Fault, expected: &[&str]) {
    let report = rehearse(fault).await;
    assert_eq!(broken(&report), expected, "{fault:?}\n{report}");
    assert!(!report.held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_system_holds_in_every_row_and_sells_every_seat() {
    let report = rehearse(Fault::None).await;
    assert!(report.held(), "{report}");
    let unchecked: Vec<_> = report.verdict.iter().filter(|row| row.judgement == Judgement::NotChecked).collect();
    assert!(unchecked.is_empty(), "{report}");
    assert_eq!(report.figures.tickets, fake::SEATS as u64, "{report}");
    assert_eq!(report.figures.outcomes.values().sum::<u64>(), u64::from(USERS));
    assert!(report.figures.peak_inside > 1 && report.figures.peak_inside <= fake::CAPACITY as u64, "{report}");

    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["held"], true);
    assert_eq!(json["settings"]["seed"], 1);
    assert_eq!(json["figures"]["tickets"], 24);
    assert_eq!(json["verdict"][0]["guarantee"], "G1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_who_give_up_or_forget_their_seats_stop_nobody() {
    let fake = Fake::start(Fault::None).await;
    let mix = Mix { five_tabs: 0.1, f5: 0.1, leave_early: 0.1, abandon_hold: 0.1 };
    let report =
        play_showing(Plan { mix, arrivals: Arrivals::Burst, users: 20, ..plan(&fake.url) }, &Silent).await.unwrap();
    assert!(report.held(), "{report}");
    assert!(report.figures.outcomes["left early"] > 0, "{report}");
    assert!(report.figures.outcomes["abandoned a hold"] > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_sold_twice_is_noticed_though_the_audit_denies_it() {
    let report = rehearse(Fault::DoubleSale).await;
    assert!(broken(&report).contains(&"G7"), "{report}");
    let seats = report.verdict.iter().find(|row| row.what.starts_with("each seat sold once")).unwrap();
    assert_eq!(seats.judgement, Judgement::Broken, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmed_ticket_missing_from_the_ledger_is_noticed() {
    assert_notices(Fault::LostSale, &["G7", "turned away only when all is sold"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overtaking_is_noticed() {
    let report = rehearse(Fault::Overtaking).await;
    let order = report.verdict.iter().find(|row| row.what == "called in order of arrival").unwrap();
    assert_eq!(order.judgement, Judgement::Broken, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_too_full_is_noticed() {
    assert_notices(Fault::OverCapacity, &["G1"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admissions_too_fast_are_noticed() {
    assert_notices(Fault::OverRate, &["G2"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_errors_are_noticed() {
    assert_notices(Fault::ServerErrors, &["no unexpected answer"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_place_is_noticed() {
    assert_notices(Fault::LostPlace, &["G5"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_that_rises_is_noticed() {
    assert_notices(Fault::PositionRises, &["G3"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_is_no_json_is_noticed() {
    let report = rehearse(Fault::StatusIsHtml).await;
    assert_eq!(broken(&report), ["no unexpected answer"], "{report}");
    assert!(report.to_string().contains("status: not the JSON document promised"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_for_every_reload_is_noticed() {
    let fake = Fake::start(Fault::PlacePerReload).await;
    let report = play_showing(Plan { deadline: Duration::from_secs(6), ..plan(&fake.url) }, &Silent).await.unwrap();
    assert!(broken(&report).contains(&"G4"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_in_an_address_is_noticed() {
    assert_notices(Fault::TokenInLocation, &["G10"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_cut_short_are_noticed() {
    let fake = Fake::start(Fault::SessionsCutShort).await;
    let report = play_showing(Plan { deadline: Duration::from_secs(6), ..plan(&fake.url) }, &Silent).await.unwrap();
    assert!(broken(&report).contains(&"G5"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_stands_still_ends_at_the_deadline_and_is_noticed() {
    let fake = Fake::start(Fault::NobodyIsCalled).await;
    let report = play_showing(Plan { deadline: Duration::from_secs(3), ..plan(&fake.url) }, &Silent).await.unwrap();
    assert_eq!(broken(&report), ["everybody came to an end"], "{report}");
    assert_eq!(report.figures.outcomes["unfinished"], u64::from(USERS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_private_listener_its_rows_are_unknown_or_left_out() {
    let fake = Fake::start(Fault::None).await;
    let nowhere = "http://127.0.0.1:1".parse().unwrap();
    let report = play_showing(Plan { users: 4, admin: Some(nowhere), ..plan(&fake.url) }, &Silent).await.unwrap();
    assert_eq!(judged(&report, Judgement::Unknown), ["G1", "G2", "G7", "G8", "G9"], "{report}");
    assert_eq!(broken(&report), Vec::<&str>::new(), "{report}");
    assert!(!report.held());
    assert!(report.to_string().contains("No guarantee broke, but 5 could not be checked: G1 "), "{report}");
    assert!(report.to_string().contains("give the gateway's --admin URL"), "{report}");

    let report = play_showing(Plan { users: 4, no_audit: true, ..plan(&fake.url) }, &Silent).await.unwrap();
    assert!(report.held(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_of_a_split_system_is_the_box_offices() {
    let fake = Fake::start(Fault::None).await;
    let nowhere: http::Uri = "http://127.0.0.1:1".parse().unwrap();
    let office_only =
        Plan { users: 4, admin: Some(nowhere.clone()), audit: Some(fake.url.parse().unwrap()), ..plan(&fake.url) };
    let report = play_showing(office_only, &Silent).await.unwrap();
    assert_eq!(judged(&report, Judgement::Unknown), ["G1", "G2"], "{report}");

    let gateway_only = Plan { users: 4, audit: Some(nowhere), ..plan(&fake.url) };
    let report = play_showing(gateway_only, &Silent).await.unwrap();
    assert_eq!(judged(&report, Judgement::Unknown), ["G7", "G8", "G9"], "{report}");
    assert!(report.to_string().contains("--box-office-admin URL"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_that_is_over_already_is_no_success() {
    let fake = Fake::start(Fault::None).await;
    let first = play_showing(plan(&fake.url), &Silent).await.unwrap();
    assert!(first.held(), "{first}");
    let second = play_showing(plan(&fake.url), &Silent).await.unwrap();
    assert!(!second.held(), "{second}");
    let text = second.to_string();
    assert!(text.lines().next().unwrap().contains("start the demo anew"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_shop_is_said_once_and_early() {
    let fake = Fake::start(Fault::AnotherShop).await;
    let error = play_showing(plan(&fake.url), &Silent).await.unwrap_err();
    assert!(matches!(error, RehearseError::NotTheBoxOffice { .. }), "{error}");
    assert!(error.to_string().contains("GET /events/{event}"), "{error}");

    let fake = Fake::start(Fault::None).await;
    let misnamed = Plan {
        event: Some("nowhere".to_owned()),
        url: format!("{}/events/demo", fake.url).parse().unwrap(),
        ..plan(&fake.url)
    };
    let error = play_showing(misnamed, &Silent).await.unwrap_err();
    assert!(error.to_string().contains("GET /events/nowhere answered with status 404"), "{error}");
}

#[tokio::test]
async fn nothing_at_the_address_is_said_with_the_cure() {
    let error = play_showing(plan("http://127.0.0.1:1"), &Silent).await.unwrap_err();
    assert!(matches!(error, RehearseError::Unreachable { .. }));
    assert!(error.to_string().contains("stanchion demo"), "{error}");
    let error = play_showing(plan("https://127.0.0.1:1"), &Silent).await.unwrap_err();
    assert!(error.to_string().contains("http://"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_counted_beside_the_tokens() {
    let (fake, redis) = (Fake::start(Fault::None).await, RedisServer::start());
    let counted = async || {
        let plan = Plan { users: 4, redis: Some(redis.url()), ..plan(&fake.url) };
        let report = play_showing(plan, &Silent).await.unwrap();
        let row = report.verdict.iter().find(|row| row.what.contains("by Redis")).unwrap();
        (row.judgement, row.detail.clone())
    };
    let fill = |set: &str, members: usize| {
        for member in 0..members {
            redis.command(&format!("ZADD stanchion:{{main}}:{set} 1 {member}"));
        }
    };
    let (judgement, detail) = counted().await;
    assert_eq!(judgement, Judgement::Unknown, "an empty Redis is not the system's: {detail}");
    fill("called", 3);
    fill("inside", fake::CAPACITY - 3);
    let (judgement, detail) = counted().await;
    assert_eq!(judgement, Judgement::Held, "{detail}");
    fill("called", 4);
    let (judgement, detail) = counted().await;
    assert_eq!(judgement, Judgement::Broken, "{detail}");
}
