//! A million waiting on a real Redis.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use redis::Commands as _;
use stanchion::{
    admission::LiveRoom,
    clock::SystemClock,
    queue::{Score, VisitorId},
    shutdown::Shutdown,
    store::redis_engine::RedisEngine,
    tokens::{Claims, Keyring, SigningKey, TokenType},
};

use crate::support::{house, redis_server::RedisServer};

const WAITING: u32 = 1_000_000;
const FIRST: u64 = 1_800_000_000_000_000;
/// Hundreds of times what a script takes, so that a machine that stalls is not taken for one that walks the line.
const SLOW: [&str; 3] = ["SET", "slowlog-log-slower-than", "100000"];
const WALK: &str = "return #redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')";

fn score(rank: u32) -> u64 {
    FIRST + u64::from(rank) * 37
}

fn claims(rank: u32, now: u64) -> Claims {
    Claims {
        typ: TokenType::Queue,
        room: "main".parse().unwrap(),
        sub: VisitorId::from_bits(u128::from(rank)),
        score: Score(score(rank)),
        iat: now,
        exp: now + 3_600,
        epoch: 1,
        draw: false,
        arrival: None,
        since_ms: None,
        ahead: None,
        called_ms: None,
        admitted_ms: None,
    }
}

fn near(rank: u32) -> RangeInclusive<u64> {
    u64::from(rank)..=u64::from(rank + rank / 1_000)
}

/// The front, and a thousand anywhere.
fn sample() -> impl Iterator<Item = u32> {
    (0..1_000).chain((0..1_000).map(|turn| 1_000 + turn * 604_171 % (WAITING - 1_000)))
}

fn fill(connection: &mut redis::Connection) {
    for thousand in (0..WAITING).step_by(1_000) {
        let members: Vec<(u64, String)> = (thousand..thousand + 1_000)
            .map(|rank| (score(rank), VisitorId::from_bits(u128::from(rank)).to_string()))
            .collect();
        let _: usize = connection.zadd_multiple("stanchion:{main}:line", &members).unwrap();
    }
}

/// The calls of each command so far, as `INFO commandstats` tells them.
fn commands(connection: &mut redis::Connection) -> Vec<(String, u64)> {
    let info: String = redis::cmd("INFO").arg("commandstats").query(connection).unwrap();
    let stats = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
    let counts = stats.map(|(name, rest)| (name.to_owned(), rest.split(',').next().unwrap().parse().unwrap()));
    counts.filter(|(name, _)| !["info", "config|resetstat", "ping"].contains(&&**name)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_poll_without_the_store_and_are_told_closely() {
    let redis = RedisServer::start();
    let engine = Arc::new(RedisEngine::connect(&redis.url()).await.unwrap());
    let mut config = house::config();
    config.policy.capacity = 0;
    let keyring = Keyring::new(SigningKey::random(), Vec::new());
    let room = LiveRoom::open(config, engine, Arc::new(SystemClock), keyring, true, None).await.unwrap();
    let mut connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    fill(&mut connection);
    let _: String = redis::cmd("CONFIG").arg(&SLOW).query(&mut connection).unwrap();
    let _: String = redis::cmd("SLOWLOG").arg("RESET").query(&mut connection).unwrap();
    let shutdown = Shutdown::new();
    room.start(&shutdown);

    let now = room.now_ms() / 1_000;
    let told = async |rank: u32| {
        let turn = room.look_up(Some(claims(rank, now))).await;
        room.status(&turn).ahead
    };
    let close = async {
        loop {
            let mut is_close = true;
            for rank in sample() {
                is_close &= told(rank).await.is_some_and(|ahead| near(rank).contains(&ahead));
            }
            if is_close {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    // About 26 looks, of a quarter of a second each, on a machine of its own.
    tokio::time::timeout(Duration::from_mins(1), close).await.expect("positions get close");
    for rank in sample() {
        let ahead = told(rank).await.unwrap();
        assert!(near(rank).contains(&ahead), "{rank} is told {ahead}");
    }

    // The room's own tasks end, so that every command from now on would be a poll's.
    shutdown.stop();
    assert!(shutdown.drain(Duration::from_secs(5)).await);
    let before = commands(&mut connection);
    for rank in 0..2_000 {
        assert!(told(rank * 499).await.is_some());
    }
    assert_eq!(commands(&mut connection), before);
    let slow =
        |connection: &mut redis::Connection| -> usize { redis::cmd("SLOWLOG").arg("LEN").query(connection).unwrap() };
    assert_eq!(slow(&mut connection), 0);
    let _: usize = redis::Script::new(WALK).key("stanchion:{main}:line").invoke(&mut connection).unwrap();
    assert!(slow(&mut connection) > 0, "a walk along the line is told");
}
