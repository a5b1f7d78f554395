//! The proof: what is published and kept is checked by the program itself, as a stranger would.

use std::{fs, path::Path};

use super::*;
use crate::support::program::stanchion;

/// A draw by the real system: its files in a folder, and whose receipt it is.
async fn published(dir: &Path, beacon: bool) -> String {
    let engine = in_process();
    let house = House::on(Arc::clone(&engine), keyring(), |config| {
        lottery(config);
        config.beacon = beacon.then(|| "drand quicknet round 7".to_owned());
    })
    .await;
    let mut crowd: Vec<Browser> = (0..30).map(|_| house.browser()).collect();
    for visitor in &mut crowd {
        register(visitor).await;
    }
    let answer = crowd[4].call(HttpMethod::GET, "/__room/main/receipt").await;
    assert_eq!((answer.status, answer.header("cache-control")), (StatusCode::OK, "no-store"));
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"receipt-main-1.json\"");
    fs::write(dir.join("receipt.json"), answer.text()).unwrap();
    let roster = async || house.admin(HttpMethod::GET, "/api/rooms/main/roster", Some(ADMIN_TOKEN), "").await;
    assert_eq!(roster().await.0, StatusCode::CONFLICT, "not fixed yet");
    assert!(draw_json(&house).await["seed"].is_null(), "not before the draw");
    open_the_sale(&house, &engine).await;
    if beacon {
        eventually("the digest", async || draw_json(&house).await["roster_digest"].is_string().then_some(())).await;
        house.admin(HttpMethod::POST, "/api/rooms/main/beacon", Some(ADMIN_TOKEN), "{\"value\":\"said\"}").await;
    }
    let draw = until_drawn(&house).await;
    fs::write(dir.join("draw.json"), draw.to_string()).unwrap();
    let (status, lines) = roster().await;
    assert_eq!((status, lines.lines().count()), (StatusCode::OK, 30));
    fs::write(dir.join("roster.txt"), lines).unwrap();

    let place = crowd[4].until("waiting").await["position"].to_string();
    // The receipt can be had later too, and says the same.
    let later = crowd[4].call(HttpMethod::GET, "/__room/main/receipt").await;
    assert_eq!(later.text(), fs::read_to_string(dir.join("receipt.json")).unwrap());
    place
}

struct Outcome {
    ok: bool,
    said: String,
}

fn verify(dir: &Path, more: &[&str]) -> Outcome {
    let file = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (draw, roster) = (file("draw.json"), file("roster.txt"));
    let output = stanchion(&[&["verify-draw", "--draw", &draw, "--roster", &roster], more].concat());
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    Outcome { ok: output.status.success(), said }
}

fn change(dir: &Path, name: &str, change: impl FnOnce(&str) -> String) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in ["draw.json", "roster.txt", "receipt.json"] {
        fs::copy(dir.join(file), copy.path().join(file)).unwrap();
    }
    let text = fs::read_to_string(dir.join(name)).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed);
    fs::write(copy.path().join(name), changed).unwrap();
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn anybody_can_check_the_draw_and_a_place_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let place = published(dir, false).await;
    let receipt = |dir: &Path| dir.join("receipt.json").to_str().unwrap().to_owned();

    let whole = verify(dir, &[]);
    assert!(whole.ok && whole.said.contains("30 drew"), "{}", whole.said);
    let mine = verify(dir, &["--receipt", &receipt(dir)]);
    assert!(mine.ok && mine.said.contains(&format!("\nPlace: {place} of 30\n")), "{} but {place}", mine.said);
    let visitor: serde_json::Value = serde_json::from_str(&fs::read_to_string(receipt(dir)).unwrap()).unwrap();
    let visitor = visitor["visitor"].as_str().unwrap().to_owned();
    let json = verify(dir, &["--visitor", &visitor, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.said).unwrap();
    assert_eq!((json["place"].to_string(), &json["drew"]), (place.clone(), &30.into()));
    let order = dir.join("order.txt");
    assert!(verify(dir, &["--order", order.to_str().unwrap()]).ok);
    let order = fs::read_to_string(order).unwrap();
    assert_eq!(order.lines().count(), 30);
    assert!(order.lines().any(|line| line.starts_with(&format!("{place} {visitor} "))));

    let files = ["draw.json", "roster.txt", "receipt.json"];
    let before = files.map(|file| fs::read_to_string(dir.join(file)).unwrap());
    std::os::unix::fs::symlink(dir.join("roster.txt"), dir.join("alias")).unwrap();
    for file in files.into_iter().chain(["alias"]) {
        let order = dir.join(file);
        let overwrites = verify(dir, &["--receipt", &receipt(dir), "--order", order.to_str().unwrap()]);
        assert!(!overwrites.ok && overwrites.said.contains("--order would overwrite"), "{}", overwrites.said);
    }
    assert_eq!(files.map(|file| fs::read_to_string(dir.join(file)).unwrap()), before);

    let refused = |outcome: Outcome, why: &str| assert!(!outcome.ok && outcome.said.contains(why), "{}", outcome.said);
    let other = "AAAAAAAAAAAAAAAAAAAAAA";
    refused(verify(dir, &["--visitor", other]), "is not in the roster");
    refused(verify(dir, &["--visitor", "-AAAAAAAAAAAAAAAAAAAAA"]), "is not in the roster");
    refused(verify(dir, &["--beacon-value", "x"]), "no beacon was named");
    let copy = change(dir, "roster.txt", |text| text.lines().skip(1).fold(String::new(), |all, l| all + l + "\n"));
    refused(verify(copy.path(), &[]), "the roster is not the one that was fixed");
    let copy = change(dir, "roster.txt", |text| text.replacen(&visitor, other, 1));
    refused(verify(copy.path(), &[]), "the roster is not the one that was fixed");
    let edit = |field: &'static str, to: serde_json::Value| {
        move |text: &str| {
            let mut document: serde_json::Value = serde_json::from_str(text).unwrap();
            document[field] = to;
            document.to_string()
        }
    };
    let zeros = "0".repeat(64);
    for (field, why) in [
        ("seed", "not the one that was committed to"),
        ("commitment", "not the one that was committed to"),
        ("public_value", "no beacon was named before the draw"),
        ("beacon", "but none (the roster's digest decides) was committed to"),
        ("roster_digest", "the public value is not the roster's digest"),
    ] {
        let copy = change(dir, "draw.json", edit(field, zeros.clone().into()));
        refused(verify(copy.path(), &[]), why);
    }
    let copy = change(dir, "draw.json", edit("seed", serde_json::Value::Null));
    refused(verify(copy.path(), &[]), "not done yet");
    let copy = change(dir, "draw.json", edit("receipt_keys", serde_json::json!([])));
    refused(verify(copy.path(), &["--receipt", &receipt(copy.path())]), "not one of the published receipt_keys");
    for (field, to) in [("arrival", 5.into()), ("visitor", other.into()), ("epoch", 9.into()), ("room", "x".into())] {
        let copy = change(dir, "receipt.json", edit(field, to));
        refused(verify(copy.path(), &["--receipt", &receipt(copy.path())]), "signature does not match");
    }
    let copy = change(dir, "receipt.json", |_| "{}".to_owned());
    refused(verify(copy.path(), &["--receipt", &receipt(copy.path())]), "is not what this command takes");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_beacon_its_word_decides_and_is_compared() {
    let dir = tempfile::tempdir().unwrap();
    published(dir.path(), true).await;
    let unasked = verify(dir.path(), &[]);
    assert!(unasked.ok && unasked.said.contains("drand quicknet round 7 must have said said"), "{}", unasked.said);
    assert!(verify(dir.path(), &["--beacon-value", "said"]).ok);
    let other = verify(dir.path(), &["--beacon-value", "other"]);
    assert!(!other.ok && other.said.contains("but the beacon said \"other\""), "{}", other.said);

    // An operator who exchanges the beacon, in the commitment too, is given away by every receipt.
    let copy = change(dir.path(), "draw.json", |text| text.replace("round 7", "round 8"));
    let receipt = copy.path().join("receipt.json").to_str().unwrap().to_owned();
    let exchanged = verify(copy.path(), &["--receipt", &receipt]);
    let why = "the receipt was given when beacon \"drand quicknet round 7\" was to decide, but draw.json says beacon \"drand quicknet round 8\"";
    assert!(!exchanged.ok && exchanged.said.contains(why), "{}", exchanged.said);
}
