//! `stanchion verify-draw`.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};

use crate::{
    queue::{
        VisitorId,
        lottery::{
            Commitment, Published,
            verify::{Order, verify},
        },
    },
    tokens::Receipt,
};

/// Check a lottery's draw, a place in it, or all of it, offline
///
/// Recomputes everything from what is published: that seed and beacon are those that were committed to before anybody came,
/// that the roster is the one whose digest was fixed when the pre-queue closed, that the public value is that digest or
/// what the beacon said, and that a receipt is genuine and its holder took part. Exit status 0 when all of it is as
/// published, 1 with the first thing that is not.
///
/// Examples:
///   stanchion verify-draw --draw draw.json --roster roster.txt
///   stanchion verify-draw --draw draw.json --roster roster.txt --receipt receipt-main-1.json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The published draw: /__room/ROOM/draw.json.
    #[arg(long, value_name = "FILE")]
    draw: PathBuf,
    /// The published roster.
    #[arg(long, value_name = "FILE")]
    roster: PathBuf,
    /// A visitor's receipt: checks it, and prints their place.
    #[arg(long, value_name = "FILE", conflicts_with = "visitor")]
    receipt: Option<PathBuf>,
    /// Prints this visitor's place.
    // One id in 64 begins with a hyphen.
    #[arg(long, allow_hyphen_values = true, value_name = "ID")]
    visitor: Option<VisitorId>,
    /// What the named beacon said, to compare.
    #[arg(long, value_name = "VALUE")]
    beacon_value: Option<String>,
    /// Writes the whole order here, the first to be called first: place, visitor, draw.
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,
    /// Prints the outcome as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    would_overwrite_nothing(args)?;
    let draw: Published = read_json(&args.draw)?;
    let receipt: Option<Receipt> = args.receipt.as_deref().map(read_json).transpose()?;
    let roster = File::open(&args.roster).with_context(|| format!("cannot read {}", args.roster.display()))?;
    let order = verify(&draw, BufReader::with_capacity(1 << 16, roster), args.beacon_value.as_deref())?;
    let whom = match &receipt {
        Some(receipt) => Some(check(receipt, &draw, &order)?),
        None => args.visitor,
    };
    let place = whom.map(|whom| place_of(whom, &order)).transpose()?;
    if let Some(file) = &args.order {
        write_order(file, &order).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if args.json {
        let unchecked = unchecked_beacon(args, &draw);
        let visitor = whom.map(|whom| whom.to_string());
        let outcome = serde_json::json!({
            "room": draw.room, "epoch": draw.epoch, "drew": order.len(), "visitor": visitor, "place": place,
            "beacon_to_compare": unchecked,
        });
        super::tell(&format!("{outcome}\n"))?;
    } else {
        super::tell(&explained(args, &draw, &order, place))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn explained(args: &Args, draw: &Published, order: &Order, place: Option<usize>) -> String {
    let mut lines = vec![format!(
        "Commitment, roster and public value of room {} in epoch {} are as published.",
        draw.room, draw.epoch
    )];
    if let Some(beacon) = unchecked_beacon(args, draw) {
        let public = draw.public_value.as_deref().unwrap_or_default();
        lines.push(format!(
            "Compare yourself: {beacon} must have said {public} (or give what it said with --beacon-value)."
        ));
    }
    if args.receipt.is_some() {
        lines.push("The receipt is genuine, and its holder took part.".to_owned());
    }
    lines.push(match place {
        Some(place) => format!("Place: {place} of {}", order.len()),
        None => format!("{} drew.", order.len()),
    });
    lines.join("\n") + "\n"
}

/// The beacon whose word was taken for it.
fn unchecked_beacon<'a>(args: &Args, draw: &'a Published) -> Option<&'a str> {
    draw.beacon.as_deref().filter(|_| args.beacon_value.is_none())
}

/// Whose receipt it is, if it is a good one of this draw.
fn check(receipt: &Receipt, draw: &Published, order: &Order) -> anyhow::Result<VisitorId> {
    receipt.check(&draw.receipt_keys)?;
    if (&receipt.room, receipt.epoch) != (&draw.room, draw.epoch) {
        bail!("the receipt is of room {} in epoch {}, the draw is not", receipt.room, receipt.epoch);
    }
    let beacon = Commitment::read(&receipt.commitment).and_then(|it| it.beacon);
    if beacon != draw.beacon.as_deref() {
        let named = |beacon: Option<&str>| beacon.map_or("no beacon".to_owned(), |it| format!("beacon {it:?}"));
        let (before, now) = (named(beacon), named(draw.beacon.as_deref()));
        bail!("the receipt was given when {before} was to decide, but draw.json says {now}");
    }
    if Some(&receipt.commitment) != draw.commitment.as_ref() {
        bail!("the receipt was given under another commitment: the seed was exchanged after its holder came");
    }
    let whom: VisitorId = receipt.visitor.parse().context("the receipt names no visitor")?;
    match order.place_of(whom) {
        Some((_, arrival)) if arrival.0 == receipt.arrival => Ok(whom),
        Some(_) => bail!("the roster says that the receipt's holder came at another time than the receipt does"),
        None => bail!(
            "the receipt's holder is not in the roster: they left before the opening, or the store lost the roster in the pre-queue \
             and they were not back in time, or they were left out"
        ),
    }
}

fn place_of(whom: VisitorId, order: &Order) -> anyhow::Result<usize> {
    order.place_of(whom).map(|(place, _)| place).with_context(|| format!("visitor {whom} is not in the roster"))
}

/// Else the proof would be gone after the first look at it.
fn would_overwrite_nothing(args: &Args) -> anyhow::Result<()> {
    let which = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let Some(order) = args.order.as_deref().and_then(which) else { return Ok(()) };
    for input in [Some(&args.draw), Some(&args.roster), args.receipt.as_ref()].into_iter().flatten() {
        if which(input) == Some(order) {
            bail!("--order would overwrite {}: choose another file", input.display());
        }
    }
    Ok(())
}

fn write_order(file: &Path, order: &Order) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for (place, (visitor, draw)) in (1_u64..).zip(order.iter()) {
        writeln!(out, "{place} {visitor} {}", draw.0)?;
    }
    out.flush()
}

fn read_json<T: serde::de::DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not what this command takes", file.display()))
}
