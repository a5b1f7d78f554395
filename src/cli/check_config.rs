//! `stanchion check-config` and `stanchion keygen`.

use std::{path::PathBuf, process::ExitCode};

use super::doors;
use crate::{
    config::{Overrides, RoomConfig, ServeConfig},
    queue::Method,
};

/// Check a configuration file without starting anything
///
/// Reports every problem at once, each with its cure, and warns of what is likely not meant. Exit status 0 when the file can be used, 1 otherwise.
///
/// Example: stanchion check-config stanchion.toml
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to check.
    file: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = ServeConfig::load(Some(&args.file), Overrides::default())?;
    let certificates = doors::certificates(&config.listeners)?;
    for warning in config.warnings().into_iter().chain(doors::warnings(&certificates)) {
        eprintln!("warning: {warning}");
    }
    println!("{}: fine. {} room(s): {}", args.file.display(), config.rooms.len(), room_names(&config));
    let draws = |room: &&RoomConfig| room.policy.schedule.method == Method::Lottery;
    for room in config.rooms.iter().filter(draws).filter(|_| config.redis.is_none()) {
        println!(
            "note: room {} draws lots on the embedded engine: the draw survives a restart only with what is kept in {}",
            room.name,
            config.data.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn room_names(config: &ServeConfig) -> String {
    config.rooms.iter().map(|room| room.name.as_str()).collect::<Vec<_>>().join(", ")
}

pub fn keygen() -> ExitCode {
    println!("{}", crate::config::keys::generate());
    ExitCode::SUCCESS
}
