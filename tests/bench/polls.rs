//! Polls per second, and per second on a processor, against two answers that need no thought.

use super::{
    args::Args,
    client::{self, Client},
    figures::{Goal, Row, Sample, Spread, in_turn},
    servers, store, visitors,
    wrk::Load,
};

const WAITING: u32 = 50_000;
const VISITORS: u32 = 1_000;
const STATUS: &str = "/__room/main/status";
/// What the gateway answers without reading more than the address.
const CONSTANT: &str = "/__room/main/nothing/there";

pub fn run(args: &Args) -> anyhow::Result<Vec<Row>> {
    let redis = servers::redis()?;
    let mut connection = store::connect(&redis)?;
    let gateway = servers::gateway(&args.binary, &redis)?;
    store::fill(&mut connection, WAITING)?;
    let cookies = visitors::cookies(VISITORS, WAITING)?;
    std::thread::sleep(std::time::Duration::from_secs(3));
    let poll = Client::connect(gateway.port)?.ask(&client::poll(cookies.first().map_or("", String::as_str)))?;
    let (nginx, cached) = (servers::nginx(&poll.body, false)?, servers::nginx(&poll.body, true)?);

    let heads: Vec<String> = cookies.iter().map(|cookie| format!("Cookie: {cookie}")).collect();
    let load = |path, status| Load::new(("GET", path, status), &heads, args.connections, args.time());
    let (polls, constant, file) = (load(STATUS, 200)?, load(CONSTANT, 404)?, load("/status", 200)?);
    let samples = in_turn(
        args.rounds,
        vec![
            Box::new(|| polls.run(&gateway, &gateway)),
            Box::new(|| constant.run(&gateway, &gateway)),
            Box::new(|| file.run(&nginx, &nginx)),
            Box::new(|| file.run(&cached, &cached)),
        ],
    )?;
    let [polls, constant, file, cached] = &samples[..] else { anyhow::bail!("four subjects") };
    let mut rows = Vec::new();
    for (other, name, goal) in
        [(constant, "the same server's constant answer", 0.9), (file, "nginx serving a static file", 1.3)]
    {
        let ratio = |value: fn(&Sample) -> f64| Spread::of_ratios(polls, other, value);
        rows.push(Row::new(
            format!("polls ÷ {name}, per second"),
            ratio(|sample| sample.per_second),
            Goal::AtLeast(goal),
        ));
        rows.push(Row::new("… per second on a processor", ratio(|sample| sample.per_cpu_second), Goal::AtLeast(goal)));
    }
    let micros = |samples: &[Sample]| Spread::of(samples.iter().map(|sample| 1e6 / sample.per_cpu_second));
    rows.push(Row::new("µs on a processor: a poll", micros(polls), Goal::None));
    rows.push(Row::new("… the constant answer", micros(constant), Goal::None));
    rows.push(Row::new("… nginx's file", micros(file), Goal::None));
    rows.push(Row::new("… nginx's file, kept open", micros(cached), Goal::None));
    Ok(rows)
}
