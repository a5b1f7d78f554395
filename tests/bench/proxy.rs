//! What it costs to forward a request of an admitted visitor, against proxies that verify nothing.

use super::{
    args::Args,
    figures::{Goal, Row, Sample, Spread, in_turn},
    servers, visitors,
    wrk::Load,
};

const VISITORS: u32 = 200;
/// What the origin answers, 1 kB.
const ANSWER: usize = 1_024;
/// Connections of visitors, and what per CPU second should be against nginx.
const CROWDS: [(u32, f64); 3] = [(64, 1.0), (512, 1.1), (2_000, 1.2)];
/// Most requests at the origin at once.
const IN_FLIGHT: u32 = 64;
/// Held open and silent to weigh a connection.
const IDLE: u32 = 5_000;

pub fn run(args: &Args) -> anyhow::Result<Vec<Row>> {
    let redis = servers::redis()?;
    let origin = servers::nginx_origin(&"x".repeat(ANSWER))?;
    let gateway = servers::proxy(&args.binary, &redis, &origin, IN_FLIGHT)?;
    let (nginx, haproxy) = (servers::nginx_proxy(&origin)?, servers::haproxy(&origin)?);
    let sessions: Vec<String> = (0..VISITORS).map(visitors::session).collect::<Result<_, _>>()?;
    let heads: Vec<String> = sessions.iter().map(|session| format!("Cookie: {session}")).collect();
    let mut rows = Vec::new();
    for (connections, goal) in CROWDS {
        let load = |path| Load::new(("GET", path, 200), &heads, connections, args.time());
        let (shop, open) = (load("/shop")?, load("/open")?);
        let samples = in_turn(
            args.rounds,
            vec![
                Box::new(|| shop.run(&gateway, &gateway)),
                Box::new(|| open.run(&gateway, &gateway)),
                Box::new(|| shop.run(&nginx, &nginx)),
                Box::new(|| shop.run(&haproxy, &haproxy)),
            ],
        )?;
        let [ours, open, nginx, haproxy] = &samples[..] else { anyhow::bail!("four subjects") };
        let ratio = |other: &[Sample], value: fn(&Sample) -> f64| Spread::of_ratios(ours, other, value);
        let per_cpu = |sample: &Sample| sample.per_cpu_second;
        rows.push(Row::new(
            format!("proxied ÷ nginx, per second on a processor, {connections} connections"),
            ratio(nginx, per_cpu),
            Goal::AtLeast(goal),
        ));
        rows.push(Row::new("… per second", ratio(nginx, |sample| sample.per_second), Goal::None));
        rows.push(Row::new("… its p99", ratio(nginx, |sample| sample.p99_ms), Goal::AtMost(1.0)));
        rows.push(Row::new("… ÷ HAProxy, per second on a processor", ratio(haproxy, per_cpu), Goal::None));
        rows.push(Row::new("… with ÷ without a token to verify", ratio(open, per_cpu), Goal::AtLeast(0.96)));
        let micros = Spread::of(ours.iter().map(|sample| 1e6 / sample.per_cpu_second));
        rows.push(Row::new("… µs on a processor", micros, Goal::None));
    }
    rows.push(idle_connections(args, &redis, &origin, heads.first().map_or("", String::as_str))?);
    Ok(rows)
}

/// What a connection weighs that has asked once and is silent now.
fn idle_connections(args: &Args, redis: &servers::Server, origin: &servers::Server, head: &str) -> anyhow::Result<Row> {
    let gateway = servers::proxy(&args.binary, redis, origin, IN_FLIGHT)?;
    let request = format!("GET /shop HTTP/1.1\r\nHost: shop.test\r\n{head}\r\n\r\n");
    let before = gateway.resident_mib()?;
    let mut clients = Vec::new();
    for _ in 0..IDLE {
        let mut client = super::client::Client::connect(gateway.port)?;
        client.ask(&request)?;
        clients.push(client);
    }
    // Silent: what a connection needs to read with, it gives back when it was not used for a while.
    std::thread::sleep(std::time::Duration::from_secs(5));
    let kib = (gateway.resident_mib()? - before) * 1_024.0 / f64::from(IDLE);
    Ok(Row::new("KiB for each of 5,000 idle connections", Spread::of([kib]), Goal::AtMost(12.0)))
}
