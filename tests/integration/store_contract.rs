//! What every engine promises, run on each; and what only Redis can get wrong.

mod cluster;
mod expirations;
mod memory;
mod outages;
mod sentinel;
mod servers;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use stanchion::{
    clock::{Clock, ManualClock},
    store::{Arg, Script, SharedEngine, StoreError, Value, in_process::InProcess},
};

use crate::support::{redis_client::RedisClient, redis_server::RedisServer};

const START: u64 = 1_700_000_000_123_456;

/// An engine under test and a way to let time pass for it.
struct Bench {
    engine: SharedEngine,
    clock: Option<ManualClock>,
    _server: Option<RedisServer>,
}

impl Bench {
    #[expect(clippy::unused_async, reason = "made like its twin")]
    async fn in_process() -> Self {
        let clock = ManualClock::at(START);
        Self { engine: Arc::new(InProcess::new(Arc::new(clock.clone()))), clock: Some(clock), _server: None }
    }

    async fn on_redis(client: RedisClient) -> Self {
        let server = RedisServer::start();
        let engine = client.connect(&server.url()).await;
        Self { engine, clock: None, _server: Some(server) }
    }

    async fn run(&self, lua: &'static str, keys: &[&str], args: Vec<Arg>) -> Result<Value, StoreError> {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        self.engine.run(script(lua), &keys, args).await
    }

    async fn reply(&self, lua: &'static str) -> Value {
        self.run(lua, &["k"], Vec::new()).await.unwrap()
    }

    async fn complaint(&self, lua: &'static str) -> String {
        match self.run(lua, &["k"], Vec::new()).await {
            Err(StoreError::Script { script: "test-1.lua", message }) => message,
            other => panic!("expected a script error, got {other:?}"),
        }
    }

    /// Asks until the reply is this, while time passes.
    async fn until(&self, lua: &'static str, wanted: Value) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.reply(lua).await != wanted {
            assert!(Instant::now() < deadline, "{lua} never gave {wanted:?}");
            match &self.clock {
                Some(clock) => clock.advance(Duration::from_millis(10)),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

fn script(lua: &'static str) -> &'static Script {
    Box::leak(Box::new(Script::new("test-1.lua", lua)))
}

fn bulk(text: &'static str) -> Value {
    Value::Bulk(Bytes::from_static(text.as_bytes()))
}

fn bulks(texts: &[&'static str]) -> Value {
    Value::Array(texts.iter().copied().map(bulk).collect())
}

fn ok() -> Value {
    Value::Status("OK".to_owned())
}

macro_rules! on_each_engine {
    ($($test:ident),+ $(,)?) => {
        mod in_process {
            $(#[tokio::test] async fn $test() { super::$test(super::Bench::in_process().await).await; })+
        }
        mod redis {
            $(#[tokio::test] async fn $test() { super::$test(super::Bench::on_redis(super::RedisClient::Redis).await).await; })+
        }
        #[cfg(feature = "fred")]
        mod fred {
            $(#[tokio::test] async fn $test() { super::$test(super::Bench::on_redis(super::RedisClient::Fred).await).await; })+
        }
    };
}

on_each_engine!(
    replies_follow_resp2,
    keys_and_arguments_arrive_byte_for_byte,
    large_numbers_keep_their_digits,
    set_takes_nx_and_expiry,
    hashes_keep_fields,
    sorted_sets_rank_by_score_then_bytes,
    a_key_goes_when_its_time_is_up,
    a_command_error_ends_the_script_but_undoes_nothing,
    a_script_may_catch_errors,
    broken_scripts_are_script_errors,
    scripts_cannot_leave_anything_behind_in_lua,
    time_is_unix_time_in_two_parts,
    info_names_the_servers_run,
);

async fn replies_follow_resp2(bench: Bench) {
    for (lua, reply) in [
        ("return nil", Value::Nil),
        ("return false", Value::Nil),
        ("return true", Value::Int(1)),
        ("return 3.99", Value::Int(3)),
        ("return -3.99", Value::Int(-3)),
        ("return 'text'", bulk("text")),
        ("return ''", bulk("")),
        ("return {ok = 'FINE'}", Value::Status("FINE".to_owned())),
        ("return redis.status_reply('FINE')", Value::Status("FINE".to_owned())),
        ("return {}", Value::Array(vec![])),
        ("return {1, nil, 3}", Value::Array(vec![Value::Int(1)])),
        ("return {1, {'a', false}}", Value::Array(vec![Value::Int(1), Value::Array(vec![bulk("a"), Value::Nil])])),
    ] {
        assert_eq!(bench.reply(lua).await, reply, "{lua}");
    }
}

async fn keys_and_arguments_arrive_byte_for_byte(bench: Bench) {
    let bytes = Bytes::from((0..=255).collect::<Vec<u8>>());
    let args = vec![Arg::Bytes(bytes.clone()), Arg::from(-5_i64), Arg::from("x")];
    let reply = bench.run("return {KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], #ARGV}", &["a:{b}", ""], args).await;
    let expected = [bulk("a:{b}"), bulk(""), Value::Bulk(bytes), bulk("-5"), bulk("x"), Value::Int(3)];
    assert_eq!(reply.unwrap(), Value::Array(expected.to_vec()));
}

/// Scores are microseconds since 1970; one lost digit would reorder the line.
async fn large_numbers_keep_their_digits(bench: Bench) {
    let lua = "redis.call('ZADD', KEYS[1], ARGV[1] + 1, 'm')
        redis.call('SET', KEYS[2], ARGV[1] + 1)
        return {redis.call('ZSCORE', KEYS[1], 'm'), redis.call('GET', KEYS[2]), ARGV[1] + 1}";
    let reply = bench.run(lua, &["z", "s"], vec![Arg::from(START)]).await.unwrap();
    let plus_one = Value::Int(1_700_000_000_123_457);
    assert_eq!(reply, Value::Array(vec![bulk("1700000000123457"), bulk("1700000000123457"), plus_one]));
}

async fn set_takes_nx_and_expiry(bench: Bench) {
    assert_eq!(bench.reply("return redis.call('SET', KEYS[1], 'first', 'NX', 'EX', 100)").await, ok());
    assert_eq!(bench.reply("return redis.call('SET', KEYS[1], 'second', 'NX', 'EX', 9)").await, Value::Nil);
    assert_eq!(bench.reply("return redis.call('GET', KEYS[1])").await, bulk("first"));
    assert_eq!(bench.reply("return redis.call('TTL', KEYS[1])").await, Value::Int(100));
    assert_eq!(bench.reply("return redis.call('PERSIST', KEYS[1])").await, Value::Int(1));
    assert_eq!(bench.reply("return redis.call('TTL', KEYS[1])").await, Value::Int(-1));
    assert_eq!(bench.reply("return redis.call('DEL', KEYS[1], KEYS[1])").await, Value::Int(1));
    assert_eq!(bench.reply("return redis.call('SET', KEYS[1], 'x', 'XX')").await, Value::Nil);
}

async fn hashes_keep_fields(bench: Bench) {
    assert_eq!(bench.reply("return redis.call('HSET', KEYS[1], 'a', 1, 'b', 'x', 'a', 2)").await, Value::Int(2));
    assert_eq!(bench.reply("return redis.call('HINCRBY', KEYS[1], 'a', -5)").await, Value::Int(-3));
    let expected = Value::Array(vec![bulk("-3"), Value::Nil, bulk("x")]);
    assert_eq!(bench.reply("return redis.call('HMGET', KEYS[1], 'a', 'none', 'b')").await, expected);
    assert_eq!(bench.reply("return redis.call('HDEL', KEYS[1], 'a', 'b', 'c')").await, Value::Int(2));
    assert_eq!(bench.reply("return redis.call('EXISTS', KEYS[1])").await, Value::Int(0));
}

async fn sorted_sets_rank_by_score_then_bytes(bench: Bench) {
    let filled = "return redis.call('ZADD', KEYS[1], 2, 'z', 1, 'b', 1, 'a', 1.5, 'm', '-inf', 'first')";
    assert_eq!(bench.reply(filled).await, Value::Int(5));
    assert_eq!(bench.reply("return redis.call('ZADD', KEYS[1], 'NX', 9, 'a')").await, Value::Int(0));
    assert_eq!(bench.reply("return redis.call('ZRANGE', KEYS[1], 0, -1)").await, bulks(&["first", "a", "b", "m", "z"]));
    assert_eq!(bench.reply("return redis.call('ZRANK', KEYS[1], 'm')").await, Value::Int(3));
    assert_eq!(bench.reply("return redis.call('ZCOUNT', KEYS[1], '(1', '+inf')").await, Value::Int(2));
    let window = "return redis.call('ZRANGEBYSCORE', KEYS[1], 1, '(2', 'WITHSCORES', 'LIMIT', 1, 2)";
    assert_eq!(bench.reply(window).await, bulks(&["b", "1", "m", "1.5"]));
    assert_eq!(bench.reply("return redis.call('ZPOPMIN', KEYS[1], 2)").await, bulks(&["first", "-inf", "a", "1"]));
    assert_eq!(bench.reply("return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', 1.5)").await, Value::Int(2));
    assert_eq!(bench.reply("return redis.call('ZCARD', KEYS[1])").await, Value::Int(1));
}

async fn a_key_goes_when_its_time_is_up(bench: Bench) {
    bench.reply("redis.call('HSET', KEYS[1], 'a', 1) redis.call('PEXPIRE', KEYS[1], 200)").await;
    bench.until("return redis.call('EXISTS', KEYS[1])", Value::Int(0)).await;
    assert_eq!(bench.reply("return redis.call('TTL', KEYS[1])").await, Value::Int(-2));
    // What comes under the same name later has no expiry of its own.
    assert_eq!(bench.reply("return redis.call('SET', KEYS[1], 'new')").await, ok());
    assert_eq!(bench.reply("return redis.call('PTTL', KEYS[1])").await, Value::Int(-1));
}

async fn a_command_error_ends_the_script_but_undoes_nothing(bench: Bench) {
    let message = bench
        .complaint("redis.call('SET', KEYS[1], 'kept') redis.call('ZCARD', KEYS[1]) redis.call('SET', KEYS[1], 'no')")
        .await;
    assert!(message.starts_with("WRONGTYPE Operation against a key"), "{message}");
    assert_eq!(bench.reply("return redis.call('GET', KEYS[1])").await, bulk("kept"));
}

async fn a_script_may_catch_errors(bench: Bench) {
    assert_eq!(
        bench.reply("return redis.pcall('INCRBY', KEYS[1], 'x').err").await,
        bulk("ERR value is not an integer or out of range")
    );
    assert_eq!(bench.complaint("return redis.error_reply('FULL no seat left')").await, "FULL no seat left");
    assert_eq!(bench.complaint("return {1, {err = 'FULL no seat left'}}").await, "FULL no seat left");
}

async fn broken_scripts_are_script_errors(bench: Bench) {
    for (lua, start) in [
        ("retrn 1", "ERR Error compiling script (new function): user_script:1:"),
        ("return missing", "ERR user_script:1: Script attempted to access nonexistent global variable 'missing'"),
        ("return os.time()", "ERR user_script:1: Script attempted to access nonexistent global variable 'os'"),
        ("return redis.call('NONSENSE')", "ERR Unknown Redis command called from script"),
        ("return redis.call('GET')", "ERR Wrong number of args calling Redis command from script"),
        ("return redis.call('GET', {})", "ERR Lua redis lib command arguments must be strings or integers"),
        ("error('boom')", "ERR user_script:1: boom"),
    ] {
        let message = bench.complaint(lua).await;
        assert!(message.starts_with(start), "{lua}: {message}");
    }
}

async fn scripts_cannot_leave_anything_behind_in_lua(bench: Bench) {
    for lua in ["leak = 1", "function leak() end", "redis.call = nil", "redis.leak = 1"] {
        assert!(bench.complaint(lua).await.contains("Attempt to modify a readonly table"), "{lua}");
    }
    let reply = bench.run("return {#KEYS, #ARGV}", &[], vec![]).await.unwrap();
    assert_eq!(reply, Value::Array(vec![Value::Int(0), Value::Int(0)]), "left over from the run before");
}

async fn time_is_unix_time_in_two_parts(bench: Bench) {
    let reply = bench.reply("local t = redis.call('TIME') return {t[1] * 1, t[2] * 1, #t}").await;
    let Value::Array(parts) = reply else { panic!("{reply:?}") };
    match (&bench.clock, &parts[..]) {
        (Some(_), parts) => assert_eq!(parts, [Value::Int(1_700_000_000), Value::Int(123_456), Value::Int(2)]),
        (None, [Value::Int(1_700_000_000..), Value::Int(0..1_000_000), Value::Int(2)]) => {}
        other => panic!("{other:?}"),
    }
}

const RUN_ID: &str = r"return string.match(redis.call('INFO', 'server'), '\nrun_id:(%x+)\r\n')";

/// By it a script notices that the server was restarted or another one took over.
async fn info_names_the_servers_run(bench: Bench) {
    let run_id = bench.reply(RUN_ID).await;
    assert!(matches!(&run_id, Value::Bulk(id) if id.len() == 40), "{run_id:?}");
    assert_eq!(bench.reply(RUN_ID).await, run_id, "the same as long as the server runs");
    assert_eq!(bench.reply("return redis.call('INFO', 'nothing')").await, bulk(""));
}

/// A clock that never gives the same time twice.
#[derive(Debug, Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn unix_micros(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[tokio::test]
async fn another_engine_is_another_run() {
    let (one, other) = (Bench::in_process().await, Bench::in_process().await);
    assert_ne!(one.reply(RUN_ID).await, other.reply(RUN_ID).await);
}

#[tokio::test]
async fn in_process_time_stands_still_within_a_script() {
    let engine = Arc::new(InProcess::new(Arc::new(Ticking::default())));
    let bench = Bench { engine, clock: None, _server: None };
    let two_times = "return {redis.call('TIME')[2], redis.call('TIME')[2]}";
    assert_eq!(bench.reply(two_times).await, bulks(&["0", "0"]));
    assert_eq!(bench.reply(two_times).await, bulks(&["1", "1"]));
}
