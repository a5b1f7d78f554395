//! `stanchion migrate`: brings a ledger's schema up to date, or says whether that is due.

use std::{path::PathBuf, process::ExitCode};

use super::{database::DatabaseArgs, tell};
use crate::box_office;

/// Bring the ledger up to date
///
/// The box office does so itself when it starts. Run this before, to have the wait or the trouble at a time of your
/// choosing. Several at once take turns. A ledger written by a newer version is left alone.
///
/// Examples:
///   stanchion migrate --database postgres://stanchion@db.internal/stanchion
///   stanchion migrate --check       # changes nothing; exit status 1 when a migration is due
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Where the ledger is kept unless --database says otherwise.
    #[arg(long, default_value = "box-office-data", value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    database: DatabaseArgs,
    /// Only say what is due.
    #[arg(long)]
    check: bool,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let migrations = box_office::migrate(&args.database.address(&args.data), args.check).await?;
    let (address, due) = (&migrations.address, &migrations.due);
    let list = due.join(", ");
    tell(&match (due.len(), args.check) {
        (0, _) => format!("{address}: up to date\n"),
        (1, true) => format!("{address}: 1 migration is due: {list}\n"),
        (count, true) => format!("{address}: {count} migrations are due: {list}\n"),
        (1, false) => format!("{address}: 1 migration run: {list}\n"),
        (count, false) => format!("{address}: {count} migrations run: {list}\n"),
    })?;
    Ok(if args.check && !due.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
