//! Samples taken in turn, and what follows from them.

use rand::seq::SliceRandom as _;

/// One round of one subject.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Operations per second of the clock.
    pub per_second: f64,
    /// Operations per second that the subject's process was on a processor.
    pub per_cpu_second: f64,
    /// 99 of 100 took no longer, ms; not a number where nobody measured it.
    pub p99_ms: f64,
}

/// What is measured in turn with others.
pub type Subject<'a, T> = Box<dyn FnMut() -> anyhow::Result<T> + 'a>;

/// `rounds` samples of every subject, in another order each round. The first round only warms up.
pub fn in_turn<T>(rounds: u32, mut subjects: Vec<Subject<'_, T>>) -> anyhow::Result<Vec<Vec<T>>> {
    let mut samples: Vec<Vec<T>> = subjects.iter().map(|_| Vec::new()).collect();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for round in 0..=rounds {
        order.shuffle(&mut rand::rng());
        for &index in &order {
            if let (Some(subject), Some(taken)) = (subjects.get_mut(index), samples.get_mut(index)) {
                let sample = subject()?;
                if round > 0 {
                    taken.push(sample);
                }
            }
        }
    }
    Ok(samples)
}

/// A whole number of things.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from float saturates")]
pub const fn count(things: f64) -> u32 {
    things as u32
}

/// Quartiles.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Spread {
    /// Of these values; not a number when there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |quarter: usize| {
            let index = (values.len().saturating_sub(1) * quarter + 2) / 4;
            values.get(index).copied().unwrap_or(f64::NAN)
        };
        Self { low: at(1), median: at(2), high: at(3) }
    }

    /// Of `ours` to `theirs`, round by round.
    pub fn of_ratios<T>(ours: &[T], theirs: &[T], value: impl Fn(&T) -> f64) -> Self {
        Self::of(ours.iter().zip(theirs).map(|(ours, theirs)| value(ours) / value(theirs)))
    }
}

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Told, not judged.
    None,
}

/// One line of the table.
#[derive(Debug)]
pub struct Row {
    pub measure: String,
    pub spread: Spread,
    pub goal: Goal,
}

impl Row {
    pub fn new(measure: impl Into<String>, spread: Spread, goal: Goal) -> Self {
        Self { measure: measure.into(), spread, goal }
    }
}
