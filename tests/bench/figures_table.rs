//! The table that is printed, and its twin in JSON.

use std::fmt;

use serde_json::json;

use super::{
    args::Benchmark,
    figures::{Goal, Row},
};

/// Every figure of a run.
#[derive(Debug, Default)]
pub struct Table(Vec<(Benchmark, Row)>);

impl Table {
    pub fn add(&mut self, benchmark: Benchmark, rows: Vec<Row>) {
        self.0.extend(rows.into_iter().map(|row| (benchmark, row)));
    }

    pub fn json(&self) -> String {
        let rows = self.0.iter().map(|(benchmark, row)| {
            let goal = match row.goal {
                Goal::AtLeast(goal) => json!({ "at_least": goal }),
                Goal::AtMost(goal) => json!({ "at_most": goal }),
                Goal::None => json!(null),
            };
            let spread = row.spread;
            json!({
                "benchmark": benchmark.to_string(), "measure": row.measure, "goal": goal, "is_met": row.is_met(),
                "median": spread.median, "lower_quartile": spread.low, "upper_quartile": spread.high,
            })
        });
        format!("{:#}\n", json!({ "rows": rows.collect::<Vec<_>>() }))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| benchmark | measure | median | quartiles | goal | |\n| --- | --- | --- | --- | --- | --- |")?;
        for (benchmark, row) in &self.0 {
            let (goal, verdict) = match (row.goal, row.is_met()) {
                (Goal::None, _) | (_, None) => (String::new(), ""),
                (Goal::AtLeast(goal), Some(is_met)) => (format!("≥ {goal}"), word(is_met)),
                (Goal::AtMost(goal), Some(is_met)) => (format!("≤ {goal}"), word(is_met)),
            };
            let (low, median, high) = (short(row.spread.low), short(row.spread.median), short(row.spread.high));
            writeln!(f, "| {benchmark} | {} | {median} | {low} to {high} | {goal} | {verdict} |", row.measure)?;
        }
        Ok(())
    }
}

impl Row {
    fn is_met(&self) -> Option<bool> {
        match self.goal {
            Goal::AtLeast(goal) => Some(self.spread.median >= goal),
            Goal::AtMost(goal) => Some(self.spread.median <= goal),
            Goal::None => None,
        }
    }
}

const fn word(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// Three digits or so.
fn short(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
