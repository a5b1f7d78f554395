//! The pages say what they are given, harm nobody whatever that is, and weigh little.

use std::{fs, io::Write as _, path::Path};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use stanchion::{
    box_office::{
        pages::{ASSETS_PATH, asset, event_page, order_page, problem_page},
        views::{CountView, EventView, OrderStatus, OrderView, SeatState, SeatView, SeatsView},
    },
    pages::{ErrorPage, WaitingPage, assets},
};

const HOSTILE: &str = "</script><script>alert(1)</script><!-- \"'& \u{2028}";

fn waiting(state: &str) -> WaitingPage<'_> {
    WaitingPage {
        title: "The Sale",
        room: "main",
        prefix: "/__room",
        state,
        // Nobody has a place before the draw.
        position: Some(4_213).filter(|_| state != "prequeue"),
        ahead: Some(4_212),
        line: Some(51_230),
        eta: Some((600, 780)),
        message: Some("Doors open at seven."),
        refresh_seconds: 20,
        to: "/events/demo?day=2",
        status_json: r#"{"room":"main","state":"waiting","message":null}"#,
        not_submitted: false,
        opens_at_ms: Some(1_780_308_000_000),
    }
}

fn event() -> EventView {
    let seat = |seat: &str, state| SeatView { seat: seat.to_owned(), state };
    EventView {
        id: "demo".to_owned(),
        name: HOSTILE.to_owned(),
        on_sale: true,
        currency: "EUR".to_owned(),
        price_minor: 4_500,
        per_hold_limit: 6,
        seats: SeatsView {
            total: 3,
            free: 1,
            map: vec![seat("A1", SeatState::Free), seat("A2", SeatState::Held), seat("AB12", SeatState::Sold)],
        },
        general_admission: CountView { total: 200, free: 17 },
    }
}

fn order(status: OrderStatus) -> OrderView {
    OrderView {
        order: "o_abc".to_owned(),
        event: HOSTILE.to_owned(),
        status,
        seats: vec!["A1".to_owned(), "AB12".to_owned()],
        quantity: 2,
        amount_minor: 9_000,
        currency: "EUR".to_owned(),
    }
}

/// What a browser shows of a state: its sections that are not hidden.
fn shows(html: &str, state: &str) -> bool {
    html.contains(&format!("<div data-when=\"{state}\">")) || html.contains(&format!("<h1 data-when=\"{state}\">"))
}

#[test]
fn pages_every_state_shows_its_own_section_only() {
    let states =
        ["waiting", "scheduled", "prequeue", "paused", "sold_out", "closed", "expired", "admitted", "not_queued"];
    for state in states {
        let page = waiting(state).render();
        for other in states {
            assert_eq!(shows(&page.html, other), other == state, "the page of {state}, section {other}");
        }
        assert!(page.html.contains("Doors open at seven."), "{state}");
        assert!(page.html.contains("noindex") && page.html.contains("lang=\"en\" dir=\"ltr\""), "{state}");
    }
    // Without a draw there is a place before the opening.
    let early = WaitingPage { position: Some(7), ..waiting("prequeue") }.render().html;
    assert!(shows(&early, "early") && !shows(&early, "prequeue") && early.contains("It opens on"), "{early}");
    assert!(!plain(&early).contains("drawn") && !plain(&early).contains("receipt"), "{early}");
    assert!(plain(&waiting("prequeue").render().html).contains("Keep your receipt"));
    assert!(shows(&waiting("something new").render().html, "waiting"));
}

/// What a browser shows that knows nothing of style or of `hidden`: everything but comments, scripts and the head.
fn plain(html: &str) -> String {
    let mut text = html.split("<body>").nth(1).unwrap().to_owned();
    for (from, to) in [("<!--", "-->"), ("<script", "</script>"), ("<", ">")] {
        while let Some(start) = text.find(from) {
            let end = text[start..].find(to).unwrap() + start + to.len();
            text.replace_range(start..end, "");
        }
    }
    text
}

#[test]
fn pages_say_nothing_of_other_states_to_browsers_without_style() {
    let room = [
        ("waiting", "You are in line"),
        ("scheduled", "The sale has not opened yet"),
        ("prequeue", "You are in. The order"),
        ("paused", "The line is paused"),
        ("sold_out", "Everything is sold"),
        ("closed", "This sale is over"),
        ("expired", "Your place was given up"),
        ("admitted", "Go in now"),
        ("not_queued", "You are not in the line"),
    ];
    for (state, _) in room {
        for bare in [false, true] {
            let mut page = waiting(state);
            if bare {
                page = WaitingPage { position: None, ahead: None, eta: None, message: None, opens_at_ms: None, ..page };
            }
            let text = plain(&page.render().html);
            for (other, words) in room {
                assert_eq!(text.contains(words), other == state, "the page of {state}, {words:?}: {text}");
            }
            for words in ["You have left", "Leave the line", "did not keep", "Last updated", "Let in per minute", "-->"]
            {
                assert!(!text.contains(words), "the page of {state}, {words:?}: {text}");
            }
            assert_eq!(text.contains("Your place is kept. Its"), state == "waiting" && bare, "{text}");
            assert_eq!(text.contains("Join the line"), matches!(state, "expired" | "not_queued"), "{text}");
        }
    }
    let shop = [
        (OrderStatus::Pending, "Processing"),
        (OrderStatus::Confirmed, "tickets are here"),
        (OrderStatus::Refused, "payment was refused"),
        (OrderStatus::Expired, "time ran out"),
        (OrderStatus::Refunded, "on its way back"),
    ];
    for (status, _) in shop {
        let text = plain(&order_page(&order(status), "The Stanchions").html);
        for (other, words) in shop {
            assert_eq!(text.contains(words), other == status, "{words:?}: {text}");
        }
        assert_eq!(text.contains("Admit one"), status == OrderStatus::Confirmed, "{text}");
        assert!(!text.contains("longer than usual") && !text.contains("-->"), "{text}");
    }
    let text = plain(&event_page(&event()).html);
    assert!(!text.contains("Yours for the moment") && !text.contains("time in the shop is over"), "{text}");
}

#[test]
fn pages_a_title_that_is_only_a_heading_is_not_said_twice() {
    let html = WaitingPage { title: "You are in line", ..waiting("waiting") }.render().html;
    assert_eq!(plain(&html).matches("You are in line").count(), 1);
    assert!(html.contains("<title>4,213 · You are in line</title>"));
    let html = WaitingPage { title: "You are in line", ..waiting("sold_out") }.render().html;
    assert!(!plain(&html).contains("You are in line") && html.contains("<title>Everything is sold</title>"));
    assert!(plain(&waiting("sold_out").render().html).contains("The Sale"));
}

#[test]
fn pages_the_numbers_are_there_without_javascript() {
    let html = waiting("waiting").render().html;
    for shown in ["<title>4,213 · The Sale", ">4,213<", ">4,212<", ">51,230<", "about 10–13 minutes"] {
        assert!(html.contains(shown), "{shown} is missing");
    }
    assert!(html.contains("<noscript><meta http-equiv=\"refresh\" content=\"20\"></noscript>"));
    let html = waiting("scheduled").render().html;
    assert!(html.contains("1 June 2026, 10:00 UTC") && html.contains("datetime=\"2026-06-01T10:00:00Z\""));
    let waits = [
        ((0, 30), "less than a minute"),
        ((20, 70), "up to 2 minutes"),
        ((120, 120), "about 2 minutes"),
        ((780, 600), "about 10–13 minutes"),
        ((7_200, 9_000), "about 2–3 hours"),
    ];
    for (eta, words) in waits {
        let html = WaitingPage { eta: Some(eta), ..waiting("waiting") }.render().html;
        assert!(html.contains(&format!(">{words}<")), "{eta:?} is not {words}");
    }
}

#[test]
fn pages_a_place_that_ended_is_offered_again_and_not_silently_replaced() {
    for state in ["expired", "not_queued", "closed"] {
        assert!(!waiting(state).render().html.contains("http-equiv=\"refresh\""), "{state} reloads itself");
    }
    let html = waiting("expired").render().html;
    assert!(html.contains("method=\"post\" action=\"/__room/main/join?to=%2Fevents%2Fdemo%3Fday%3D2\">"));
}

#[test]
fn pages_a_refused_form_is_said_and_never_sent_again() {
    let html = WaitingPage { not_submitted: true, ..waiting("waiting") }.render().html;
    assert!(html.contains("Your form was not submitted. Nothing was bought"));
    assert!(html.contains("content=\"20;url=/events/demo?day=2\""));
    for (state, again) in [("waiting", true), ("paused", true), ("sold_out", false), ("closed", false)] {
        let text = plain(&WaitingPage { not_submitted: true, ..waiting(state) }.render().html);
        assert!(text.contains("Your form was not submitted."), "{text}");
        assert_eq!(text.contains("please fill it in again"), again, "{state}: {text}");
    }
}

#[test]
fn pages_escape_what_strangers_write() {
    let json = format!("{{\"message\":{}}}", serde_json::to_string(HOSTILE).unwrap());
    let room = WaitingPage {
        title: HOSTILE,
        message: Some(HOSTILE),
        status_json: &json,
        to: "/?q=\"><script>",
        ..waiting("waiting")
    };
    let error =
        ErrorPage { status: 502, title: HOSTILE, explanation: HOSTILE, what_to_do: HOSTILE, request_id: HOSTILE };
    let mut pages = vec![room.render().html, error.render().html, event_page(&event()).html];
    pages.push(order_page(&order(OrderStatus::Confirmed), "The Stanchions").html);
    pages.push(problem_page(404, HOSTILE, HOSTILE, Some("/\"><script>")).html);
    for html in &pages {
        assert!(!html.contains("<script>") && !html.contains("<!-- "), "{html}");
        assert!(html.contains("alert(1)"), "the text itself is shown");
    }
    let embedded = pages[0].split("id=\"status\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(!embedded.contains('\u{2028}'));
    let read: serde_json::Value = serde_json::from_str(embedded).unwrap();
    assert_eq!(read["message"], HOSTILE, "escaping changes no meaning");
}

#[test]
fn pages_lead_to_no_other_site() {
    for to in
        ["//evil.example/", "/\\evil.example", "https://evil.example/", "javascript:alert(1)", "/\t/evil.example", ""]
    {
        let html = WaitingPage { to, not_submitted: true, ..waiting("admitted") }.render().html;
        assert!(html.contains("href=\"/\">Go in now") && html.contains("data-to=\"/\""), "{to:?}");
        assert!(!html.contains("evil") && !html.contains("alert("), "{to:?}");
    }
}

#[test]
fn pages_of_the_box_office_show_seats_prices_and_tickets() {
    let html = event_page(&event()).html;
    let shown = [
        "€45.00",
        "<button value=\"A1\">1<",
        "<button value=\"A2\" data-s=\"held\">2<",
        "aria-label=\"Row AB\"",
        "<button value=\"AB12\" data-s=\"sold\">12<",
        ">17</span> of 200 left",
    ];
    for part in shown {
        assert!(html.contains(part), "{part} is missing");
    }
    let statuses = [
        (OrderStatus::Pending, "pending"),
        (OrderStatus::Confirmed, "confirmed"),
        (OrderStatus::Refused, "refused"),
        (OrderStatus::Expired, "expired"),
        (OrderStatus::Refunded, "refunded"),
    ];
    for (status, name) in statuses {
        let html = order_page(&order(status), "The Stanchions").html;
        for (_, other) in statuses {
            assert_eq!(shows(&html, other), other == name, "the page of {name}, section {other}");
        }
        assert!(html.contains("€90.00") && html.contains("o_abc") && html.contains("A1, AB12"), "{name}");
        assert_eq!(html.contains("http-equiv=\"refresh\""), name == "pending", "{name}");
    }
    assert_eq!(
        order_page(&order(OrderStatus::Confirmed), "The Stanchions").html.matches("class=\"ticket\"").count(),
        2
    );
}

#[test]
fn pages_need_no_inline_code_and_the_policy_allows_none() {
    let error = ErrorPage { status: 502, title: "T", explanation: "E", what_to_do: "W", request_id: "" }.render();
    let mut pages = vec![(waiting("waiting").render().html, waiting("waiting").render().csp)];
    let shops = [
        event_page(&event()),
        order_page(&order(OrderStatus::Pending), "The Stanchions"),
        problem_page(404, "T", "D", None),
    ];
    pages.extend(shops.map(|page| (page.html, page.csp.to_owned())));
    for (html, csp) in &pages {
        assert!(!html.contains("<style"), "{html}");
        for script in html.split("<script").skip(1) {
            assert!(
                script.starts_with(" defer src=\"/") || script.starts_with(" type=\"application/json\""),
                "{script}"
            );
        }
        assert!(csp.starts_with("default-src 'none'") && csp.contains("frame-ancestors 'none'"), "{csp}");
    }
    pages.push((error.html.clone(), error.csp.clone()));
    for (html, csp) in &pages {
        assert!(!html.contains(" style=") && !html.contains(" onclick"), "{html}");
        assert!(!csp.contains("unsafe"), "{csp}");
    }
    let style = error.html.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    let hash = ring::digest::digest(&ring::digest::SHA256, style.as_bytes());
    let hash = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, hash);
    assert!(error.csp.contains(&format!("style-src 'sha256-{hash}'")), "the error page's style would be refused");
}

#[test]
fn pages_assets_resolve_under_hashed_names_and_old_names_do_not() {
    for logical in ["room.css", "room.js"] {
        let url = assets::url("/__room", logical);
        let found = assets::find(url.strip_prefix("/__room/assets/").unwrap()).unwrap();
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut GzDecoder::new(found.gzip.as_deref().unwrap()), &mut unpacked).unwrap();
        assert_eq!(unpacked, found.body);
        assert!(found.etag.starts_with("W/\"") && found.content_type.contains("charset=utf-8"));
        assert!(waiting("waiting").render().html.contains(&format!("\"{url}\"")), "the page does not use {url}");
        assert!(assets::find(logical).is_none(), "a name without its hash could be cached for ever");
    }
    for html in [event_page(&event()).html, order_page(&order(OrderStatus::Pending), "The Stanchions").html] {
        let names: Vec<_> = html.split(ASSETS_PATH).skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(names.len(), 2);
        assert!(names.iter().all(|name| asset(name).is_some()), "{names:?}");
    }
}

#[test]
fn pages_the_waiting_page_weighs_at_most_14_kb() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(waiting("waiting").render().html.as_bytes()).unwrap();
    let html = encoder.finish().unwrap().len();
    let sizes = ["room.css", "room.js"].map(|name| {
        assets::find(assets::url("", name).strip_prefix("/assets/").unwrap()).unwrap().gzip.as_ref().unwrap().len()
    });
    let total = html + sizes.iter().sum::<usize>();
    println!("html {html}, css {}, js {}, total {total} bytes compressed", sizes[0], sizes[1]);
    assert!(total <= 14_000, "{total} bytes");
}

#[test]
fn pages_name_no_other_host() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("templates"), root.join("static")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap().replace("http://www.w3.org/2000/svg", "");
            for outside in ["http:", "https:", "\"//", "'//", "url(//", "@import", "@font-face"] {
                assert!(!text.contains(outside), "{} has {outside}", path.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 10, "only {seen} files found");
}

#[test]
fn pages_colours_have_enough_contrast() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("static");
    let css = ["base.css", "shop.css"].map(|file| fs::read_to_string(root.join(file)).unwrap()).concat();
    for (scheme, last) in [("light", false), ("dark", true)] {
        let colour = |name: &str| {
            let marker = format!("--{name}: #");
            let mut all = css.split(&marker).skip(1).map(|rest| rest.split(';').next().unwrap());
            luminance(if last { all.last() } else { all.next() }.unwrap())
        };
        for (front, back, least) in [
            ("ink", "bg", 7.0),
            ("ink", "tint", 7.0),
            ("soft", "bg", 4.5),
            ("soft", "card", 4.5),
            ("soft", "tint", 4.5),
            ("soft", "line", 3.0),
            ("accent", "bg", 4.5),
            ("on-accent", "accent", 4.5),
            ("edge", "bg", 3.0),
            ("edge", "card", 3.0),
        ] {
            let (one, other) = (colour(front), colour(back));
            let ratio = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(
                ratio >= least,
                "{scheme}: {front} on {back} is {ratio:.2}, below {least} (WCAG 2.2, 1.4.3 and 1.4.11)"
            );
        }
    }
}

fn luminance(hex: &str) -> f64 {
    let wide = if hex.len() == 3 { hex.chars().flat_map(|digit| [digit, digit]).collect() } else { hex.to_owned() };
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&wide[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}
