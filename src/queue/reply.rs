//! Reads what the queue's scripts reply.

use super::{Mode, Place, QueueError, Score, VisitorId};
use crate::store::{Script, StoreError, Value};

/// What every script replies while the room has no state.
pub(super) const NOT_CONFIGURED: Value = Value::Int(-1);

/// What some scripts reply to a caller that knows another epoch than the present one.
pub(super) const OTHER_EPOCH: Value = Value::Int(-2);

/// How many integers make a place.
const PLACE: usize = 6;

/// A reply that is read from front to back.
pub(super) struct Reply {
    script: &'static str,
    rest: std::vec::IntoIter<Value>,
}

impl Reply {
    /// Takes a reply apart; a single value counts as a list of one.
    pub(super) fn new(script: &Script, value: Value) -> Self {
        let values = match value {
            Value::Array(values) => values,
            single => vec![single],
        };
        Self { script: script.file(), rest: values.into_iter() }
    }

    fn unexpected(&self, what: &str) -> QueueError {
        StoreError::Script { script: self.script, message: format!("unexpected reply: {what}") }.into()
    }

    /// Whether everything is read.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.len() == 0
    }

    /// The next value, a number that is not negative.
    pub(super) fn number(&mut self) -> Result<u64, QueueError> {
        match self.rest.next() {
            Some(Value::Int(number)) => {
                u64::try_from(number).map_err(|_| self.unexpected("a number below zero where none can be"))
            }
            _ => Err(self.unexpected("a number is missing")),
        }
    }

    /// The next value, a number that fits 32 bits.
    pub(super) fn small(&mut self) -> Result<u32, QueueError> {
        u32::try_from(self.number()?).map_err(|_| self.unexpected("a number above 32 bits"))
    }

    /// The next value, text.
    pub(super) fn text(&mut self) -> Result<String, QueueError> {
        match self.rest.next() {
            Some(Value::Bulk(bytes)) => {
                String::from_utf8(bytes.into()).map_err(|_| self.unexpected("text that is not UTF-8"))
            }
            _ => Err(self.unexpected("text is missing")),
        }
    }

    /// The next value, text that holds a fraction.
    pub(super) fn fraction(&mut self) -> Result<f64, QueueError> {
        self.text()?.parse().map_err(|_| self.unexpected("text that is not a number"))
    }

    /// The next value, text that holds numbers between spaces.
    pub(super) fn numbers(&mut self) -> Result<Vec<u64>, QueueError> {
        let numbers: Result<_, _> = self.text()?.split_ascii_whitespace().map(str::parse).collect();
        numbers.map_err(|_| self.unexpected("text that is not a list of numbers"))
    }

    /// The next three values: what a draw published so far.
    pub(super) fn facts(&mut self) -> Result<[Option<String>; 3], QueueError> {
        let mut facts = [const { None }; 3];
        for fact in &mut facts {
            *fact = Some(self.text()?).filter(|text| !text.is_empty());
        }
        Ok(facts)
    }

    /// The next value, a mode.
    pub(super) fn mode(&mut self) -> Result<Mode, QueueError> {
        let code = self.number()?;
        mode_of(code).ok_or_else(|| self.unexpected("a mode nobody knows"))
    }

    /// The next six values, a place.
    pub(super) fn place(&mut self) -> Result<Place, QueueError> {
        let [code, first, second, third, admitted_ms, fresh] = self.place_numbers()?;
        let score = Score(first);
        match code {
            0 => Ok(Place::None),
            1 => Ok(Place::Waiting { score, ahead: second.checked_sub(1) }),
            2 => Ok(Place::Called { score, deadline_ms: second, wait_ms: third }),
            3 => Ok(Place::Inside { score, expires_ms: second, called_ms: third, admitted_ms, fresh: fresh == 1 }),
            4 => mode_of(first).map(Place::NotOpen).ok_or_else(|| self.unexpected("a mode nobody knows")),
            5 => Ok(Place::Registered { arrival: score, since_ms: second }),
            _ => Err(self.unexpected("a place nobody knows")),
        }
    }

    /// Everything left, visitors with a score each.
    pub(super) fn visitors(mut self) -> Result<Vec<(VisitorId, Score)>, QueueError> {
        let mut visitors = Vec::with_capacity(self.rest.len() / 2);
        while self.rest.len() > 0 {
            let visitor = self.text()?.parse().map_err(|_| self.unexpected("a visitor that is none"))?;
            let score = self.text()?.parse().map_err(|_| self.unexpected("a score that is none"))?;
            visitors.push((visitor, Score(score)));
        }
        Ok(visitors)
    }

    fn place_numbers(&mut self) -> Result<[u64; PLACE], QueueError> {
        let mut numbers = [0; PLACE];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Ok(numbers)
    }

    /// Everything left, `count` places.
    pub(super) fn places(mut self, count: usize) -> Result<Vec<Place>, QueueError> {
        if self.rest.len() != count * PLACE {
            return Err(self.unexpected("not one place per visitor"));
        }
        (0..count).map(|_| self.place()).collect()
    }
}

fn mode_of(code: u64) -> Option<Mode> {
    use Mode::{Closed, Drawing, Open, Paused, Prequeue, Scheduled, SoldOut};
    [Scheduled, Open, Paused, SoldOut, Closed, Prequeue, Drawing].get(usize::try_from(code).ok()?).copied()
}

/// What `mode-5.lua` stores. How far the schedule of an open room has come is for the clock to say.
pub(super) fn stored_code(mode: Mode) -> u32 {
    match mode {
        Mode::Scheduled | Mode::Prequeue | Mode::Drawing | Mode::Open => 1,
        Mode::Paused => 2,
        Mode::SoldOut => 3,
        Mode::Closed => 4,
    }
}
