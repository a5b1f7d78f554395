//! Where everybody is, kept apart from the store.

use std::collections::VecDeque;

use serde::Serialize;

use super::crowd::Nth;

/// Where somebody is, or how it ended for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// Not here yet.
    Coming,
    /// In the line.
    Waiting,
    /// At the front, with a claim window running.
    Called,
    /// In the shop.
    Inside,
    /// Went with tickets.
    Bought,
    /// Was inside and went without tickets.
    Browsed,
    /// Did not come when called.
    NoShow,
    /// Left the line.
    GaveUp,
    /// The store had no place for them: a defect, and the verdict says so.
    Lost,
}

/// People by what became of them. Together they are everybody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct People {
    /// Have tickets.
    pub bought: u64,
    /// Were inside and took no tickets.
    pub browsed: u64,
    /// Did not come when called.
    pub no_shows: u64,
    /// Left the line.
    pub gave_up: u64,
    /// Were inside when the sale ended.
    pub still_inside: u64,
    /// Were called and on their way in when the sale ended.
    pub still_called: u64,
    /// Were in line when the sale ended, or came too late for it.
    pub turned_away: u64,
    /// Were lost by the store: never, unless the verdict is broken.
    pub lost: u64,
}

/// Everybody's whereabouts, and how many are where.
#[derive(Debug)]
pub struct Book {
    places: Vec<Whereabouts>,
    /// Scores by the store, to compare later answers with.
    scores: Vec<u64>,
    /// Who joined and was not called yet, in that order; those who gave up are still among them.
    line: VecDeque<Nth>,
    /// In the line.
    pub waiting: u32,
    /// At the front.
    pub called: u32,
    /// In the shop.
    pub inside: u32,
}

impl Book {
    /// So many people are coming.
    pub fn of(users: u32) -> Self {
        let users = users as usize;
        Self {
            places: vec![Whereabouts::Coming; users],
            scores: vec![0; users],
            line: VecDeque::new(),
            waiting: 0,
            called: 0,
            inside: 0,
        }
    }

    /// Where somebody is.
    pub fn place(&self, nth: Nth) -> Whereabouts {
        self.places.get(nth as usize).copied().unwrap_or(Whereabouts::Lost)
    }

    /// The score they were given when they joined.
    pub fn score(&self, nth: Nth) -> u64 {
        self.scores.get(nth as usize).copied().unwrap_or_default()
    }

    /// Puts somebody at the end of the line.
    pub fn joins(&mut self, nth: Nth, score: u64) {
        if let Some(known) = self.scores.get_mut(nth as usize) {
            *known = score;
        }
        self.line.push_back(nth);
        self.moves(nth, Whereabouts::Waiting);
    }

    /// Whoever has waited longest is called.
    pub fn calls_next(&mut self) -> Option<Nth> {
        while let Some(nth) = self.line.pop_front() {
            if self.place(nth) == Whereabouts::Waiting {
                self.moves(nth, Whereabouts::Called);
                return Some(nth);
            }
        }
        None
    }

    /// Notes where somebody is from now on.
    pub fn moves(&mut self, nth: Nth, to: Whereabouts) {
        let Some(place) = self.places.get_mut(nth as usize) else { return };
        let from = std::mem::replace(place, to);
        if let Some(count) = self.count(from) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.count(to) {
            *count += 1;
        }
    }

    fn count(&mut self, place: Whereabouts) -> Option<&mut u32> {
        match place {
            Whereabouts::Waiting => Some(&mut self.waiting),
            Whereabouts::Called => Some(&mut self.called),
            Whereabouts::Inside => Some(&mut self.inside),
            _ => None,
        }
    }

    /// Whether nobody is anywhere in the room.
    pub fn is_empty(&self) -> bool {
        self.waiting + self.called + self.inside == 0
    }

    /// Called and inside together.
    pub fn occupied(&self) -> u32 {
        self.called + self.inside
    }

    /// What became of everybody.
    pub fn people(&self) -> People {
        let mut people = People::default();
        for place in &self.places {
            *match place {
                Whereabouts::Bought => &mut people.bought,
                Whereabouts::Browsed => &mut people.browsed,
                Whereabouts::NoShow => &mut people.no_shows,
                Whereabouts::GaveUp => &mut people.gave_up,
                Whereabouts::Inside => &mut people.still_inside,
                Whereabouts::Called => &mut people.still_called,
                Whereabouts::Coming | Whereabouts::Waiting => &mut people.turned_away,
                Whereabouts::Lost => &mut people.lost,
            } += 1;
        }
        people
    }
}
