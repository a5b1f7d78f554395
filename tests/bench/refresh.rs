//! Redis commands that polls cause: none, beyond what a node asks anyway.

use std::time::Duration;

use super::{
    args::Args,
    client,
    figures::{Goal, Row, Spread},
    servers, store, visitors,
};

/// How many visitors poll: the same ones in each run, so that as many are reported as present.
const VISITORS: u32 = 100;
const TIME: Duration = Duration::from_secs(5);

/// Counts the scripts that the gateway runs while nobody polls, and while the same visitors poll 1,000 times, and 10,000
/// times, in the same time.
pub fn run(args: &Args) -> anyhow::Result<Vec<Row>> {
    let redis = servers::redis()?;
    let mut connection = store::connect(&redis)?;
    let gateway = servers::gateway(&args.binary, &redis)?;
    store::fill(&mut connection, 10_000)?;
    let cookies = visitors::cookies(VISITORS, 10_000)?;
    std::thread::sleep(Duration::from_secs(3));
    let mut runs = |polls: u32| {
        let before = store::scripts(&mut connection)?.runs;
        if polls == 0 {
            std::thread::sleep(TIME);
        } else {
            client::poll_at_rate(gateway.port, &cookies, f64::from(polls) / TIME.as_secs_f64(), TIME)?;
        }
        anyhow::Ok(f64::from(u32::try_from(store::scripts(&mut connection)?.runs - before)?))
    };
    let (idle, few, many) = (runs(0)?, runs(1_000)?, runs(10_000)?);
    let seconds = TIME.as_secs_f64();
    let row = |measure: &str, value: f64, goal| Row::new(measure, Spread::of([value]), goal);
    Ok(vec![
        row("script runs a second, nobody polls (the fixed refresh)", idle / seconds, Goal::None),
        row("… 200 polls a second by 100 visitors: one more, which says who is present", few / seconds, Goal::None),
        row("… 2,000 polls a second by the same 100 visitors", many / seconds, Goal::None),
        // Timers of one round more or less fall into either run.
        row(
            "script runs per 1,000 polls more, in whole ones",
            ((many - few) / 9.0).max(0.0).round(),
            Goal::AtMost(0.0),
        ),
    ])
}
