//! Every command in the README is run, as written there but for ports and sizes that a test must choose.

use std::{path::Path, process::Command};

use http::Method;
use serde_json::json;

use crate::support::{
    browser::Browser,
    house::eventually,
    postgres::PostgresServer,
    program::{Demo, Running, stanchion},
    redis_server::{RedisServer, free_port},
};

/// The commands of the README's `sh` blocks, after `cargo run --release --`.
fn commands() -> Vec<String> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let mut inside = false;
    let mut commands = Vec::new();
    for line in readme.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside => commands.push(command.to_owned()),
            _ => {}
        }
    }
    commands
}

#[test]
fn every_command_of_the_readme_works() {
    let data = tempfile::tempdir().unwrap();
    let args = ["--opens-in", "1s", "--seats", "20", "--hold-for", "5s", "--admin-token", "TOKEN"];
    let demo = Demo::start(data.path(), &args);
    for command in
        commands().into_iter().filter(|command| !is_of_the_lottery(command) && !is_of_the_box_office(command))
    {
        let Some(args) = command.strip_prefix("cargo run --release -- ") else {
            curl(&demo, &command);
            continue;
        };
        let args: Vec<&str> = args.split_whitespace().collect();
        match args[0] {
            // Started above, on free ports.
            "demo" => assert_eq!(args.len(), 1, "{command}"),
            "rehearse" if args.contains(&"--simulate") => simulate(&args),
            "race" => race(&args),
            "rehearse" => rehearse(&demo, &args),
            "serve" => serve(&args),
            "pay-sandbox" => pay_sandbox(&args),
            "check-config" => {
                let output = stanchion(&args);
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            }
            _ => panic!("the README has a command that this test does not know: {command}"),
        }
    }
}

/// These need a room that has drawn.
fn is_of_the_lottery(command: &str) -> bool {
    ["draw.json", "roster.txt"].iter().any(|file| command.contains(file))
}

/// These need servers.
fn is_of_the_box_office(command: &str) -> bool {
    ["-- migrate ", "-- box-office "].iter().any(|part| command.contains(part))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lottery_is_published_and_checked_as_the_readme_says() {
    let data = tempfile::tempdir().unwrap();
    let [public, private] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    let in_seconds = |seconds: i64| (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).to_string();
    let config = data.path().join("stanchion.toml");
    let (prequeue_at, opens_at) = (in_seconds(-1), in_seconds(3));
    let table = format!(
        "listen = {public:?}\nadmin = {private:?}\ndata = {:?}\n[[rooms]]\norigin = \"http://127.0.0.1:9\"\n\
         method = \"lottery\"\nprequeue_at = {prequeue_at:?}\nopens_at = {opens_at:?}\n",
        data.path().join("keys")
    );
    std::fs::write(&config, table).unwrap();
    let environment = [("STANCHION_ADMIN_TOKEN", "TOKEN")];
    let _gateway = Running::start(&["serve", "--config", config.to_str().unwrap()], &environment);
    let up = async || tokio::net::TcpStream::connect(&public).await.ok();
    eventually("the gateway to listen", up).await;
    let mut ann = Browser::at(&format!("http://{public}"));
    ann.open("/").await;
    ann.until_json("/__room/main/draw.json", |draw| draw["seed"].is_string()).await;
    for command in commands().into_iter().filter(|command| is_of_the_lottery(command)) {
        let command = command
            .replace("127.0.0.1:8080", &public)
            .replace("127.0.0.1:9090", &private)
            .replace("curl ", "curl --fail --silent --show-error ")
            .replace("cargo run --release --", env!("CARGO_BIN_EXE_stanchion"));
        let output = Command::new("sh").args(["-c", &command]).current_dir(data.path()).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{command}: {said}");
        assert!(!command.contains("verify-draw") || said.contains("drew."), "{command}: {said}");
    }
}

#[tokio::test]
async fn the_box_office_sells_on_servers_as_the_readme_says() {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let secrets = [("STANCHION_PROVIDER_KEY", "a-key"), ("STANCHION_WEBHOOK_SECRET", "sixteen-or-more-characters")];
    let data = tempfile::tempdir().unwrap();
    for command in commands().into_iter().filter(|command| is_of_the_box_office(command)) {
        let command = command
            .replace("postgres://stanchion:PASSWORD@127.0.0.1:5432/stanchion", &postgres.url())
            .replace("redis://127.0.0.1:6379", &redis.url());
        let args: Vec<&str> = command.strip_prefix("cargo run --release -- ").unwrap().split_whitespace().collect();
        if args[0] == "migrate" {
            let output = stanchion(&args);
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            continue;
        }
        let [public, private] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
        let more = ["--listen", &public, "--admin", &private, "--data", data.path().to_str().unwrap()];
        let _office = Running::start(&[&args[..], &more].concat(), &secrets);
        eventually("the box office to listen", async || tokio::net::TcpStream::connect(&public).await.ok()).await;
    }
}

fn curl(demo: &Demo, command: &str) {
    assert!(command.starts_with("curl "), "the README has a command that this test cannot run: {command}");
    let command = command.replace("http://127.0.0.1:9090", &demo.admin);
    let output = Command::new("sh").args(["-c", &format!("{command} --fail --silent --show-error")]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.starts_with(b"{"), "{command}: {}", String::from_utf8_lossy(&output.stdout));
}

/// A hundred visitors stand in for five thousand, and the demo's own address for 8080.
fn rehearse(demo: &Demo, args: &[&str]) {
    let args: Vec<&str> = args
        .iter()
        .map(|&arg| match arg {
            "http://127.0.0.1:8080" => demo.shop.as_str(),
            "5000" => "100",
            other => other,
        })
        .chain(["--admin", &demo.admin])
        .collect();
    let output = stanchion(&args);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("G7"), "no verdict in: {said}");
}

/// Servers of the test's own stand in for the reader's.
fn race(args: &[&str]) {
    let (postgres, redis) = (PostgresServer::start(), RedisServer::start());
    let (database, store) = (postgres.url(), redis.url());
    let mut args = args.to_vec();
    for (flag, url) in [("--database", &database), ("--redis", &store)] {
        let at = args.iter().position(|arg| *arg == flag).unwrap();
        args[at + 1] = url;
    }
    let output = stanchion(&args);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("naive") && said.contains("lua-decrement"), "strategies are missing in: {said}");
}

/// A hundred people stand in for a million, and the limits shrink with them.
fn simulate(args: &[&str]) {
    let args: Vec<&str> = args
        .iter()
        .map(|&arg| match arg {
            "1000000" => "100",
            "2000" => "20",
            "100" => "10",
            other => other,
        })
        .chain(["--seats", "10", "--visit", "5s"])
        .collect();
    let output = stanchion(&args);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("bottleneck"), "no bottleneck in: {said}");
}

/// `pay-sandbox` runs until stopped: it has worked when it says how it behaves.
fn pay_sandbox(args: &[&str]) {
    let data = tempfile::tempdir().unwrap();
    let (listen, journal) = (format!("127.0.0.1:{}", free_port()), data.path().join("payments.jsonl"));
    let args: Vec<&str> =
        args.iter().map(|arg| if *arg == "payments.jsonl" { journal.to_str().unwrap() } else { arg }).collect();
    let _sandbox = Running::start(&[&args[..], &["--listen", &listen]].concat(), &[]);
    let patience = ["--retry", "50", "--retry-connrefused", "--retry-delay", "1"];
    let ask = ["--fail", "--silent", "--header", "Authorization: Bearer a-key", &format!("http://{listen}/behaviour")];
    let output = Command::new("curl").args(patience).args(ask).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&shown["latency"], &shown["stall_ratio"]), (&json!("100ms..2s"), &json!(0.05)));
}

/// `serve` runs until stopped: it has worked when its log says that it listens.
fn serve(args: &[&str]) {
    use std::io::{BufRead as _, BufReader};
    let data = tempfile::tempdir().unwrap();
    let mut child = crate::support::program::command(args)
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"])
        .arg(data.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = lines.map_while(Result::ok).any(|line| line.contains("gateway listening"));
    let _ = child.kill();
    let _ = child.wait();
    assert!(listening, "serve ended without listening");
}

/// The demo's parts as programs of their own, as the README's last section starts them.
#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_the_demo_work_as_programs_of_their_own() {
    let data = tempfile::tempdir().unwrap();
    let [shop, audit, provider, public, private] = [(); 5].map(|()| format!("127.0.0.1:{}", free_port()));
    let dir = |name: &str| data.path().join(name).to_str().unwrap().to_owned();
    let shared = [("STANCHION_PROVIDER_KEY", "a-key"), ("STANCHION_WEBHOOK_SECRET", "sixteen-or-more-characters")];
    let url = |address: &str| format!("http://{address}");
    let (webhook, provider_url, origin) = (url(&shop) + "/webhooks/payments", url(&provider), url(&shop));
    let (ledger, keys) = (dir("box-office"), dir("gateway"));
    let _parts = [
        Running::start(&["pay-sandbox", "--listen", &provider, "--webhook", &webhook], &shared),
        Running::start(
            &["box-office", "--listen", &shop, "--admin", &audit, "--provider", &provider_url, "--data", &ledger],
            &shared,
        ),
        Running::start(&["serve", "--origin", &origin, "--listen", &public, "--admin", &private, "--data", &keys], &[]),
    ];
    for address in [&shop, &audit, &provider, &public, &private] {
        let up = async || tokio::net::TcpStream::connect(address).await.ok();
        eventually("a part to listen", up).await;
    }
    let mut buyer = Browser::at(&url(&public));
    assert_eq!(buyer.open("/events/demo").await.status, 200);
    let hold = buyer.post("/events/demo/holds", &[], &json!({ "seats": ["A1"] })).await.json();
    let order = buyer.post("/orders", &[("idempotency-key", "k")], &json!({ "hold": hold["hold"] })).await.json();
    buyer
        .until_json(&format!("/orders/{}", order["order"].as_str().unwrap()), |order| order["status"] == "confirmed")
        .await;
    let audit = Browser::at(&url(&audit)).call(Method::GET, "/events/demo/audit").await.json();
    assert_eq!((&audit["sold"], &audit["captures"]), (&json!(1), &json!(1)), "{audit}");
}
