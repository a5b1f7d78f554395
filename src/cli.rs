//! The command line: arguments, and the wiring of the parts.
#![expect(clippy::doc_markdown, reason = "the comments on arguments are the help text, not Markdown")]

mod box_office;
mod check_config;
mod database;
mod demo;
mod doors;
mod gateway;
mod migrate;
mod pay_sandbox;
mod race;
mod rehearse;
mod sale;
mod store;
mod verify_draw;

use std::{io::Write as _, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};

use crate::{shutdown::Shutdown, telemetry};

/// How long the parts may take to finish what they are doing once asked to stop.
const DRAIN_DEADLINE: Duration = Duration::from_secs(15);

/// A self-hosted virtual waiting room, and the box office behind it.
#[derive(Debug, Parser)]
#[command(name = "stanchion", version, max_term_width = 100, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(gateway::Args),
    BoxOffice(box_office::Args),
    PaySandbox(pay_sandbox::Args),
    Race(race::Args),
    Rehearse(rehearse::Args),
    Migrate(migrate::Args),
    CheckConfig(check_config::Args),
    VerifyDraw(verify_draw::Args),
    /// Print a new signing key
    ///
    /// Put it on the first line of DIR/keys on every node, or into STANCHION_KEYS; keep the previous keys on the
    /// lines below it until the tokens they signed have run out.
    ///
    /// Example: stanchion keygen
    Keygen,
}

/// Runs the command line of this process.
///
/// Exit status: 0 when it did what was asked, 1 when it could not or a rehearsal or race broke a guarantee, 2 when the
/// arguments make no sense.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::CheckConfig(args) => check_config::run(&args),
        Command::VerifyDraw(args) => verify_draw::run(&args),
        Command::Keygen => Ok(check_config::keygen()),
        Command::Rehearse(args) => on_runtime("warn", rehearse::run(args)),
        Command::Race(args) => on_runtime("warn", race::run(args)),
        Command::Demo(args) => on_runtime("warn", demo::run(args)),
        Command::Serve(args) => on_runtime("info", gateway::run(args)),
        Command::BoxOffice(args) => on_runtime("info", box_office::run(args)),
        Command::Migrate(args) => on_runtime("warn", migrate::run(args)),
        Command::PaySandbox(args) => on_runtime("info", pay_sandbox::run(args)),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("stanchion: {}", explain(&error));
        ExitCode::FAILURE
    })
}

/// Writes a result to standard output. Whoever closed it, as `head` does, has seen enough.
fn tell(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        told => told,
    }
}

/// The error and its causes, without those that the error's own words repeat.
fn explain(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| {
        let cause = cause.to_string();
        match said.as_str() {
            "" => cause,
            so_far if so_far.contains(&cause) => said,
            so_far => format!("{so_far}: {cause}"),
        }
    })
}

fn on_runtime(log_level: &str, command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    telemetry::init(log_level);
    raise_descriptor_limit();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(command)
}

/// Every visitor is a socket or two; the soft limit of 1,024 is for other programs.
fn raise_descriptor_limit() {
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "could not raise the limit of open files; see `ulimit -n`");
    }
}

/// Waits for SIGTERM or Ctrl-C, then stops everything within a bounded time.
async fn until_signalled(shutdown: &Shutdown) -> anyhow::Result<ExitCode> {
    Shutdown::signal().await?;
    stop(shutdown, DRAIN_DEADLINE).await;
    Ok(ExitCode::SUCCESS)
}

async fn stop(shutdown: &Shutdown, deadline: Duration) {
    shutdown.stop();
    if !shutdown.drain(deadline).await {
        tracing::warn!(drain_deadline_s = deadline.as_secs(), "some work was cut off by the drain deadline");
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_well_formed() {
        super::Cli::command().debug_assert();
    }
}
