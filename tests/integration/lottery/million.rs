//! How long a draw of a million takes, and what it costs the store. A measurement, run by hand:
//! `cargo nextest run --run-ignored only -E 'test(lottery::million)' --no-capture`.

use std::time::Instant;

use stanchion::queue::{VisitorId, keys};

use super::*;

/// The times of a raw reply to `SLOWLOG GET`: the third of an entry's numbers.
fn longest(reply: &str) -> Vec<u64> {
    let lines: Vec<&str> = reply.lines().collect();
    let entries = lines.windows(4).filter(|four| four[0] == "*6");
    let mut micros: Vec<u64> = entries.filter_map(|four| four[3].strip_prefix(':')?.parse().ok()).collect();
    micros.sort_unstable_by(|one, other| other.cmp(one));
    micros.truncate(5);
    micros
}

const VISITORS: u32 = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn a_million_draw() {
    let redis = RedisServer::start();
    let engine = redis_engine(&redis).await;
    let house = House::on(Arc::clone(&engine), keyring(), lottery).await;
    let roster = &keys::of_room(house.room.name())[7];
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let first = now_ms() * 1_000 - u64::from(VISITORS);
    for chunk in (0..VISITORS).collect::<Vec<_>>().chunks(10_000) {
        let members: Vec<(u64, String)> = chunk
            .iter()
            .map(|&at| (first + u64::from(at), VisitorId::from_bits(u128::from(at) << 90 | 7).to_string()))
            .collect();
        let () = redis::cmd("ZADD").arg(roster).arg(members).query_async(&mut connection).await.unwrap();
    }
    eventually("the roster", async || (draw_json(&house).await["roster"] == VISITORS).then_some(())).await;
    redis.command("CONFIG SET slowlog-log-slower-than 1000");
    redis.command("CONFIG SET slowlog-max-len 10000");
    redis.command("SLOWLOG RESET");
    redis.command("CONFIG RESETSTAT");
    let began = Instant::now();
    open_the_sale(&house, &engine).await;
    let mut closed = None;
    while began.elapsed() < Duration::from_mins(5) {
        let draw = house.room.view().snapshot.draw.clone().unwrap();
        if draw.public.is_some() && closed.is_none() {
            closed = Some(began.elapsed());
        }
        if draw.is_done {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("closed after {closed:?}, drawn after {:?}", began.elapsed());
    println!("over 1 ms: {} of them", redis.command("SLOWLOG LEN"));
    println!("the longest, us: {:?}", longest(&redis.command("SLOWLOG GET -1")));
    println!("{}", redis.command("INFO commandstats"));
    assert_eq!(house.room.view().snapshot.line, u64::from(VISITORS));
}
