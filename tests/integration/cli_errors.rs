//! Bad input at the command line: each a clear message that says what to do, none a panic.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Stdio,
    time::Duration,
};

use crate::support::program::{command, stanchion};

/// Runs a command that must fail with `status`, and gives back what it said.
fn complaint(status: i32, args: &[&str]) -> String {
    let output = stanchion(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?} said: {said}");
    assert!(!said.contains("panicked"), "{args:?} panicked: {said}");
    said
}

fn assert_says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is missing from: {said}");
    }
}

#[test]
fn an_unknown_flag_is_named_and_help_is_offered() {
    assert_says(&complaint(2, &["demo", "--seets", "5"]), &["--seets", "--seats", "--help"]);
}

#[test]
fn a_value_that_is_no_duration_is_named() {
    assert_says(&complaint(2, &["demo", "--opens-in", "soon"]), &["soon", "--opens-in"]);
}

#[test]
fn a_demo_that_would_admit_nobody_is_refused() {
    let free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--box-office-listen", "127.0.0.1:0"];
    for (flag, value) in [
        ("--capacity", "0"),
        ("--rate", "0"),
        ("--rate", "-1"),
        ("--rate", "NaN"),
        ("--rate", "inf"),
        ("--rate", "1e300"),
        ("--opens-in", "999999999999999999s"),
    ] {
        let given = format!("{flag}={value}");
        assert_says(&complaint(1, &[&["demo", &given], &free[..]].concat()), &[flag, "use "]);
    }
}

#[test]
fn a_damaged_opening_time_is_named_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().to_str().unwrap(), dir.path().join("opens-at"));
    let free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--box-office-listen", "127.0.0.1:0"];
    for damaged in [&b"soon"[..], b"\xff\xfe"] {
        std::fs::write(&file, damaged).unwrap();
        assert_says(&complaint(1, &[&["demo", "--data", data], &free[..]].concat()), &["opens-at"]);
        assert_eq!(std::fs::read(&file).unwrap(), damaged);
    }
}

#[test]
fn nothing_is_said_twice() {
    let free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--box-office-listen", "127.0.0.1:0"];
    let said = complaint(1, &[&["demo", "--hold-for", "0s"], &free[..]].concat());
    assert_eq!(said.matches("use 1 s to 24 h").count(), 1, "{said}");
}

#[test]
fn a_box_office_that_could_not_call_its_provider_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let usual =
        ["box-office", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", dir.path().to_str().unwrap()];
    let secrets = ["--provider-key", "k", "--webhook-secret", "sixteen-characters"];
    for (flag, value) in [
        ("--provider-tps", "0"),
        ("--provider-tps", "-5"),
        ("--provider-tps", "NaN"),
        ("--provider-timeout", "10ms"),
        ("--poll-after", "1h"),
        ("--payment-ttl", "0s"),
    ] {
        let given = format!("{flag}={value}");
        assert_says(&complaint(1, &[&usual[..], &secrets, &[&given]].concat()), &[flag, "use "]);
    }
}

#[test]
fn serving_nothing_asks_for_the_origin() {
    assert_says(&complaint(1, &["serve"]), &["origin", "--origin http://"]);
}

#[test]
fn a_missing_config_file_is_named() {
    assert_says(&complaint(1, &["serve", "--config", "/nowhere/stanchion.toml"]), &["/nowhere/stanchion.toml"]);
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_with_its_cure() {
    let dir = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let (files, _) = crate::support::tls::write(dir.path());
    let (strange, _) = crate::support::tls::write(other.path());
    let encrypted = dir.path().join("encrypted.pem");
    std::fs::write(&encrypted, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
        .unwrap();
    let missing = dir.path().join("missing.pem");
    let file = dir.path().join("stanchion.toml");
    let check = |certificate: &std::path::Path, key: &std::path::Path| {
        let listener =
            format!("[[listeners]]\naddress = \"127.0.0.1:0\"\ncertificate = {certificate:?}\nkey = {key:?}\n");
        std::fs::write(&file, format!("{listener}[[rooms]]\norigin = \"http://127.0.0.1:1\"\n")).unwrap();
        complaint(1, &["check-config", file.to_str().unwrap()])
    };
    assert_says(&check(&missing, &files.key), &["missing.pem", "cannot read"]);
    assert_says(&check(&files.key, &files.key), &["key.pem", "no certificate"]);
    assert_says(&check(&files.certificate, &files.certificate), &["cert.pem", "no private key"]);
    assert_says(&check(&files.certificate, &encrypted), &["encrypted.pem", "openssl pkey"]);
    assert_says(&check(&files.certificate, &strange.key), &["is not that of the first certificate"]);
}

#[test]
fn a_broken_config_file_is_reported_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broken.toml");
    std::fs::write(&file, "[[rooms]]\nname = \"Hall 1\"\ncapacity = 0\nrate = 0.0\n").unwrap();
    let said = complaint(1, &["check-config", file.to_str().unwrap()]);
    assert_says(&said, &["broken.toml", "4 problems", "Hall 1", "origin is missing", "capacity", "rate"]);
    std::fs::write(&file, "[[rooms]\n").unwrap();
    assert_says(&complaint(1, &["check-config", file.to_str().unwrap()]), &["broken.toml", "line 1"]);
}

#[test]
fn a_taken_port_is_named_with_the_cure() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = complaint(1, &["demo", "--listen", &address, "--admin", "127.0.0.1:0"]);
    assert_says(&said, &[&address, "another program", "choose another address"]);
}

#[test]
fn a_redis_that_does_not_answer_is_named_without_its_password() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let url = format!("redis://:hunter2@{address}");
    let free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let said = complaint(1, &[&["serve", "--origin", "http://127.0.0.1:9", "--redis", &url], &free[..]].concat());
    assert_says(&said, &[&address, "redis"]);
    assert!(!said.contains("hunter2"), "the password was printed: {said}");
}

#[test]
fn keygen_prints_a_key_that_serve_accepts() {
    let output = stanchion(&["keygen"]);
    let key = String::from_utf8(output.stdout).unwrap();
    assert_eq!(key.trim().len(), 64, "{key:?}");
    assert_ne!(key.as_bytes(), stanchion(&["keygen"]).stdout);
}

#[test]
fn a_demo_whose_output_nobody_takes_still_sells() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut demo = command(&["demo", "--listen", "127.0.0.1:0", "--admin", &address])
        .args(["--box-office-listen", "127.0.0.1:0"])
        .stdout(File::create("/dev/full").unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut answer = String::new();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(50));
        let Ok(mut stream) = TcpStream::connect(&address) else { continue };
        stream.write_all(b"GET /api/rooms HTTP/1.0\r\n\r\n").unwrap();
        let _cut_off = stream.read_to_string(&mut answer);
        break;
    }
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert_says(&answer, &["200 OK", "main"]);
}
