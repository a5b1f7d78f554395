//! Takes what was measured at one instant into the points.

use super::{Measures, Point, tolerance, widest_gap};

/// A point with what is known of its true rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) point: Point,
    /// As few as wait before it for all we know. Only what is asked next depends on it, never an answer.
    pub(super) low: u32,
    /// Whether it was measured just now.
    pub(super) is_exact: bool,
}

impl Row {
    fn exact(score: u64, rank: u32, gap: u32) -> Self {
        Self { point: Point { score, rank, gap }, low: rank, is_exact: true }
    }
}

/// The points after `measures`: bounds are lowered and, if `with_new`, new points put in where the gap was too wide.
/// `lows` belong to `points`, and are of some use still if they are of a moment ago (not `is_fresh`).
pub(super) fn merge(points: &[Point], lows: &[u32], measures: &Measures, is_fresh: bool, with_new: bool) -> Vec<Row> {
    let mut rows = lower(points, lows, &measures.found, with_new);
    repair(&mut rows);
    tighten(&mut rows, measures.length);
    if !is_fresh {
        keep_lows(&mut rows, points, lows);
    }
    thin(rows)
}

/// From the front: nobody has more before them than the last one measured plus everybody who may be between.
fn lower(points: &[Point], lows: &[u32], found: &[(u64, u32)], with_new: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(points.len() + found.len());
    let mut found = found.iter().copied().peekable();
    let (mut measured, mut between, mut before_is_exact) = (0_u32, 0_u32, true);
    for (at, old) in points.iter().enumerate() {
        let mut gap = old.gap;
        let low_before = at.checked_sub(1).and_then(|before| lows.get(before)).copied().unwrap_or(0);
        let is_wide = with_new && old.rank.saturating_sub(low_before) > widest_gap(low_before);
        while let Some((score, rank)) = found.next_if(|(score, _)| *score < old.score) {
            // A measure of a place that needs no point says nothing that others do not.
            if is_wide {
                let new = if before_is_exact {
                    rank.saturating_sub(measured)
                } else {
                    gap.min(rank.saturating_sub(measured))
                };
                gap = if before_is_exact { gap.saturating_sub(new) } else { gap };
                rows.push(Row::exact(score, rank, new));
                (measured, between, before_is_exact) = (rank, 0, true);
            }
        }
        if let Some((score, rank)) = found.next_if(|(score, _)| *score == old.score) {
            let since = rank.saturating_sub(measured);
            rows.push(Row::exact(score, rank, if before_is_exact { since } else { gap.min(since) }));
            (measured, between, before_is_exact) = (rank, 0, true);
        } else {
            between = between.saturating_add(gap);
            let rank = old.rank.min(measured.saturating_add(between)).max(measured);
            rows.push(Row { point: Point { rank, gap, ..*old }, low: measured, is_exact: false });
            before_is_exact = false;
        }
    }
    rows
}

/// Where more are between two measured points than there can be, places that were lost came back, or were drawn, in
/// between: the points there take the safe side, and are so vague that they are measured next.
fn repair(rows: &mut [Row]) {
    let (mut from, mut measured, mut between) = (0, 0, 0_u32);
    for at in 0..rows.len() {
        let Some(row) = rows.get(at).copied() else { break };
        between = between.saturating_add(row.point.gap);
        if !row.is_exact {
            continue;
        }
        let counted = row.point.rank.saturating_sub(measured);
        if counted > between {
            for row in rows.iter_mut().take(at + 1).skip(from) {
                row.point.gap = counted;
                row.point.rank = measured.saturating_add(counted);
            }
        }
        (from, measured, between) = (at + 1, row.point.rank, 0);
    }
}

/// From the back: nobody has more before them than whoever is behind them, nor fewer than that less everybody between.
fn tighten(rows: &mut [Row], length: u32) {
    let (mut above, mut behind) = (length, None);
    for row in rows.iter_mut().rev() {
        if row.is_exact {
            behind = Some((row.point.rank, row.point.gap));
        } else {
            row.point.rank = row.point.rank.min(above);
            if let Some((measured, between)) = &mut behind {
                row.point.gap = row.point.gap.min(measured.saturating_sub(row.low));
                row.low = row.low.max(measured.saturating_sub(*between));
                // It was too low if places came back before it.
                row.point.rank = row.point.rank.max(row.low);
                *between = between.saturating_add(row.point.gap);
            }
        }
        above = row.point.rank;
    }
}

fn keep_lows(rows: &mut [Row], points: &[Point], lows: &[u32]) {
    let mut old = points.iter().zip(lows).peekable();
    for row in rows.iter_mut() {
        while old.next_if(|(point, _)| point.score < row.point.score).is_some() {}
        if let Some((_, low)) = old.next_if(|(point, _)| point.score == row.point.score)
            && !row.is_exact
        {
            row.low = row.low.max((*low).min(row.point.rank));
        }
    }
}

/// Takes away points that change no answer: whoever is before one is told the same by the next.
fn thin(rows: Vec<Row>) -> Vec<Row> {
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    let mut rows = rows.into_iter().peekable();
    while let Some(row) = rows.next() {
        let low_before = kept.last().map_or(0, |before| before.low);
        if let Some(next) = rows.peek_mut()
            && next.point.rank == row.point.rank
            && next.point.rank.saturating_sub(low_before) <= widest_gap(low_before)
            && next.point.rank - next.low.min(next.point.rank) <= tolerance(next.low)
        {
            next.point.gap = next.point.gap.saturating_add(row.point.gap);
            continue;
        }
        kept.push(row);
    }
    kept
}

impl From<Row> for Point {
    fn from(row: Row) -> Self {
        row.point
    }
}

/// The end of the line as a point behind `rows`.
pub(super) fn end(rows: &[Row], measures: &Measures) -> Row {
    let rank = measures.length.saturating_sub(1);
    let before = rows.last().map_or(0, |row| row.low);
    Row::exact(measures.last, rank, rank.saturating_sub(before))
}
