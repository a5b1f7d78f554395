//! What the provider does to its callers when it is told to, and that the same seed does it again.

use super::*;
use crate::support::{
    eventually::eventually,
    program::{Running, stanchion},
};

fn behaving(change: impl Fn(&mut Behaviour)) -> impl Fn(&mut PaySandboxConfig) {
    move |config| change(&mut config.behaviour)
}

impl Provider {
    async fn behave(&self, behaviour: Value) -> (StatusCode, Value) {
        let request = Request::put(format!("http://{}/behaviour", self.address));
        self.send(request, behaviour.to_string()).await
    }

    async fn records(&self) -> Value {
        self.get("/records").await.1
    }

    /// A charge that may get no answer; its status, if it got one.
    async fn try_charge(&self, key: &str, order: &str) -> Option<(StatusCode, HeaderMap)> {
        let body = json!({"order": order, "amount_minor": 100, "currency": "EUR"}).to_string();
        let request = Request::post(format!("http://{}/charges", self.address))
            .header("authorization", format!("Bearer {API_KEY}"))
            .header("idempotency-key", key)
            .body(Full::from(body))
            .unwrap();
        let answer = self.client.request(request).await.ok()?;
        Some((answer.status(), answer.headers().clone()))
    }
}

#[tokio::test]
async fn failed_calls_follow_from_the_seed_and_may_have_been_carried_out() {
    let mut runs = Vec::new();
    for seed in [1, 1, 2] {
        let receiver = Receiver::start().await;
        let provider = Provider::open(
            &receiver,
            behaving(|behaviour| {
                behaviour.seed = seed;
                behaviour.error_ratio = 0.7;
            }),
        )
        .await;
        let mut statuses = Vec::new();
        for n in 0..20 {
            // Each try of one call meets a fate of its own.
            for _ in 0..2 {
                let (status, _) = provider.try_charge(&format!("k{n}"), &format!("o_{n}")).await.unwrap();
                statuses.push(status.as_u16());
            }
        }
        let records = provider.records().await;
        for n in 0..20 {
            let carried_out = statuses[2 * n..2 * n + 2].iter().any(|status| [202, 500].contains(status));
            let charges = usize::from(carried_out);
            assert_eq!(records["orders"][format!("o_{n}")]["charges"].as_u64().unwrap_or(0), charges as u64, "{n}");
        }
        for status in [202, 500, 502, 503] {
            assert!(statuses.contains(&status), "{status} of {statuses:?}");
        }
        assert_eq!(records["faults"]["calls_failed"], statuses.iter().filter(|status| **status != 202).count());
        runs.push(statuses);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[tokio::test]
async fn not_now_is_said_with_when_to_come_back() {
    let receiver = Receiver::start().await;
    let provider = Provider::open(&receiver, behaving(|behaviour| behaviour.busy_ratio = 1.0)).await;
    let (status, headers) = provider.try_charge("k1", "o_1").await.unwrap();
    assert_eq!((status.as_u16(), &headers["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(provider.records().await["orders"], json!({}));

    provider.behave(json!({"rate_limit": 1})).await;
    let mut calls = JoinSet::new();
    let provider = Arc::new(provider);
    for n in 0..50 {
        let provider = Arc::clone(&provider);
        calls.spawn(async move { provider.try_charge(&format!("k{n}"), &format!("o_{n}")).await.unwrap() });
    }
    let answers = calls.join_all().await;
    let refused = answers.iter().filter(|(status, _)| *status == 429).inspect(|(_, headers)| {
        assert_eq!(headers["retry-after"], "1");
    });
    let refused = refused.count();
    assert!((1..50).contains(&refused), "{refused}");
    let records = provider.records().await;
    assert_eq!(records["faults"]["calls_over_limit"], refused);
    assert_eq!(records["summary"]["pending"], 50 - refused);
}

#[tokio::test]
async fn a_stalled_or_dropped_call_has_charged_all_the_same() {
    let mut receiver = Receiver::start().await;
    let provider = Provider::start(&receiver, behaving(|behaviour| behaviour.stall_ratio = 1.0)).await;
    let stalled = timeout(Duration::from_millis(300), provider.try_charge("k1", "o_1")).await;
    assert!(stalled.is_err(), "{stalled:?}");
    assert_eq!(receiver.next().await["order"], "o_1");

    provider.behave(json!({"drop_ratio": 1, "latency": "0s"})).await;
    assert!(provider.try_charge("k2", "o_2").await.is_none());
    assert_eq!(receiver.next().await["order"], "o_2");
    // Reading is a call like any other.
    let request = Request::get(format!("http://{}/charges?order=o_2", provider.address));
    let request = request.header("authorization", format!("Bearer {API_KEY}")).body(Full::default()).unwrap();
    assert!(provider.client.request(request).await.is_err());

    // The same key, well-mannered: the same charges.
    provider.behave(json!({})).await;
    for (key, order) in [("k1", "o_1"), ("k2", "o_2")] {
        assert_eq!(provider.charge(key, order, 100).await.1["status"], "captured");
    }
    let records = provider.records().await;
    assert_eq!((&records["summary"]["captures"], &records["summary"]["captured_minor"]), (&json!(2), &json!(200)));
    assert_eq!((&records["faults"]["calls_stalled"], &records["faults"]["calls_dropped"]), (&json!(1), &json!(2)));
    provider.stop().await;
}

#[tokio::test]
async fn webhooks_come_twice_late_out_of_order_or_never() {
    let mut receiver = Receiver::start().await;
    let provider = Provider::start(&receiver, behaving(|behaviour| behaviour.duplicate_ratio = 1.0)).await;
    provider.charge("k1", "o_1", 100).await;
    assert_eq!(receiver.next().await, receiver.next().await);

    provider.behave(json!({"latency": "0s", "reorder_ratio": 1})).await;
    provider.charge("k2", "o_2", 100).await;
    let (newer, older) = (receiver.next().await, receiver.next().await);
    assert_eq!((&newer["type"], &older["type"]), (&json!("charge.captured"), &json!("charge.declined")));
    assert_eq!(newer["charge"], older["charge"]);
    assert!(newer["created"].as_u64() > older["created"].as_u64() && newer["id"] != older["id"]);

    provider.behave(json!({"latency": "0s", "late_ratio": 1, "late_by": "1s"})).await;
    let asked = Instant::now();
    provider.charge("k3", "o_3", 100).await;
    assert_eq!(receiver.next().await["order"], "o_3");
    assert!(asked.elapsed() >= Duration::from_secs(1));

    provider.behave(json!({"latency": "0s", "lose_ratio": 1})).await;
    provider.charge("k4", "o_4", 100).await;
    let lost = || async { (provider.records().await["faults"]["webhooks_lost"] == 1).then_some(()) };
    eventually("the webhook is lost", lost).await;
    provider.behave(json!({"latency": "0s"})).await;
    provider.charge("k5", "o_5", 100).await;
    assert_eq!(receiver.next().await["order"], "o_5");

    let records = provider.records().await;
    assert_eq!(records["summary"]["captures"], 5);
    for (fault, times) in [("duplicated", 1), ("reordered", 1), ("late", 1), ("lost", 1), ("forged", 0)] {
        assert_eq!(records["faults"][format!("webhooks_{fault}")], times, "{fault}");
    }
}

#[tokio::test]
async fn a_lost_webhook_stays_lost_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("payments.jsonl");
    let mut receiver = Receiver::start().await;
    let losing = |config: &mut PaySandboxConfig| {
        config.journal = Some(journal.clone());
        config.behaviour.lose_ratio = 1.0;
    };
    let provider = Provider::start(&receiver, losing).await;
    provider.charge("k1", "o_1", 100).await;
    wait_until(|| deliveries(&journal) == 1).await;
    provider.stop().await;
    let provider = Provider::start(&receiver, |config| config.journal = Some(journal.clone())).await;
    provider.charge("k2", "o_2", 100).await;
    assert_eq!(receiver.next().await["order"], "o_2");
}

#[tokio::test]
async fn forged_webhooks_are_what_somebody_without_the_secret_could_send() {
    let mut receiver = Receiver::start().await;
    let provider = Provider::start(&receiver, behaving(|behaviour| behaviour.forge_ratio = 1.0)).await;
    provider.charge("k1", "o_1", 100).await;
    for _ in 0..5 {
        let (_, headers, body) = timeout(PATIENCE, receiver.arrivals.recv()).await.unwrap().unwrap();
        let header = headers.get("stanchion-pay-signature").map(|header| header.to_str().unwrap());
        assert!(header.is_none_or(|header| !is_signed_now(header, &body)), "{header:?}");
    }
    assert_eq!(receiver.next().await["type"], "charge.captured");
    // This receiver believes everything, and the provider says so.
    let faults = provider.records().await["faults"].clone();
    assert_eq!((&faults["webhooks_forged"], &faults["forgeries_believed"]), (&json!(5), &json!(5)));
}

fn is_signed_now(header: &str, body: &[u8]) -> bool {
    std::panic::catch_unwind(|| assert_signed(header, body)).is_ok()
}

#[tokio::test]
async fn the_records_add_up_order_by_order() {
    let mut receiver = Receiver::start().await;
    let provider = Provider::start(&receiver, |_| {}).await;
    let (_, charge) = provider.charge("k1", "o_1", 9000).await;
    provider.charge("k2", "o_1", 500).await;
    provider.charge("k3", "o_2", 70).await;
    for _ in 0..3 {
        receiver.next().await;
    }
    provider.refund("r1", charge["charge"].as_str().unwrap(), 4000).await;
    receiver.next().await;
    let records = provider.records().await;
    let order = |charges: u64, captured: u64, refunded: u64| json!({"charges": charges, "captures": charges, "captured_minor": captured, "refunded_minor": refunded});
    assert_eq!(records["orders"], json!({"o_1": order(2, 9500, 4000), "o_2": order(1, 70, 0)}));
    assert_eq!(records["summary"], provider.get("/summary").await.1);
}

#[tokio::test]
async fn the_behaviour_is_shown_and_changed_with_the_key_only() {
    let receiver = Receiver::start().await;
    let provider = Provider::open(&receiver, |_| {}).await;
    let wanted = json!({"seed": 7, "latency": "100ms..2s", "rate_limit": 50, "stall_ratio": 0.5});
    let (status, changed) = provider.behave(wanted.clone()).await;
    assert_eq!(status, StatusCode::OK);
    for (name, value) in wanted.as_object().unwrap() {
        assert_eq!(changed[name], *value, "{name}");
    }
    assert_eq!(changed["error_ratio"], 0.0);
    assert_eq!(provider.get("/behaviour").await, (StatusCode::OK, changed.clone()));

    for (bad, complaint) in [
        (json!({"error_ratio": 2}), "error ratio 2: use 0 (never) to 1 (always)"),
        (json!({"error_ratio": 0.6, "drop_ratio": 0.6}), "their sum is 1.2"),
        (json!({"latency": "2s..1s"}), "a range such as 100ms..2s"),
        (json!({"eror_ratio": 1}), "unknown field `eror_ratio`"),
        (json!({"rate_limit": 0}), "1 call a second or more"),
    ] {
        let (status, problem) = provider.behave(bad).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(problem["detail"].as_str().unwrap().contains(complaint), "{problem}");
    }
    assert_eq!(provider.get("/behaviour").await.1, changed);
    for path in ["behaviour", "records"] {
        let request = Request::get(format!("http://{}/{path}", provider.address)).body(Full::default()).unwrap();
        assert_eq!(provider.client.request(request).await.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
}

#[test]
fn bad_arguments_are_refused_with_their_cure() {
    for (args, complaint) in [
        (&["--decline-ratio", "1.5"][..], "use 0 (never) to 1 (always)"),
        (&["--stall-ratio", "NaN"], "use 0 (never) to 1 (always)"),
        (&["--latency", "2s..1s"], "a range such as 100ms..2s"),
        (&["--rate-limit", "0"], "--rate-limit"),
        (&["--error-ratio", "0.5", "--busy-ratio", "0.6"], "error, busy, stall and drop exclude each other"),
        (&["--lose-ratio", "0.5", "--late-ratio", "0.6"], "lose, late and reorder exclude each other"),
    ] {
        let secrets = ["pay-sandbox", "--provider-key", "k", "--webhook-secret", "sixteen-characters"];
        let output = stanchion(&[&secrets[..], args].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(complaint), "{args:?}: {text}");
    }
}

/// The program itself, killed between the answer and the capture.
#[tokio::test]
async fn what_the_program_answered_survives_its_being_killed() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("payments.jsonl").display().to_string();
    let mut receiver = Receiver::start().await;
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (listen, webhook) = (address.to_string(), format!("http://{}/webhooks/payments", receiver.address));
    let run = |latency: &str| {
        let args = ["pay-sandbox", "--listen", &listen, "--webhook", &webhook, "--journal", &journal];
        let secrets = [("STANCHION_PROVIDER_KEY", API_KEY), ("STANCHION_WEBHOOK_SECRET", WEBHOOK_SECRET)];
        Running::start(&[&args[..], &["--latency", latency]].concat(), &secrets)
    };
    let provider =
        Provider { address, shutdown: Shutdown::new(), client: Client::builder(TokioExecutor::new()).build_http() };
    let charged = || async {
        let (status, _) = provider.try_charge("k1", "o_1").await?;
        (status == StatusCode::ACCEPTED).then_some(())
    };
    let program = run("1s");
    eventually("the program answers", charged).await;
    drop(program);

    let _program = run("1s");
    assert_eq!(receiver.next().await["order"], "o_1");
    eventually("the program answers", charged).await;
    assert_eq!(provider.records().await["orders"]["o_1"]["captures"], 1);
}
