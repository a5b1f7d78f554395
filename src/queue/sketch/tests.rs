//! The points against a line that is known in full.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// A line, answering as `sketch-5.lua` does.
#[derive(Default)]
struct Line {
    rest: Vec<u64>,
    aside: Vec<u64>,
    last_score: u64,
    /// By score: what everybody was told at joining and last; and last if they did not know what they were told at joining.
    told: HashMap<u64, [u64; 3]>,
}

fn before(scores: &[u64], score: u64) -> usize {
    scores.partition_point(|&other| other < score)
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap()
}

impl Line {
    fn rank(&self, score: u64) -> u32 {
        small(before(&self.rest, score) + before(&self.aside, score))
    }

    fn len(&self) -> usize {
        self.rest.len() + self.aside.len()
    }

    fn join(&mut self, count: usize) {
        for _ in 0..count {
            self.last_score += 1 + self.last_score * 7 % 13;
            let ahead = self.len() as u64;
            self.told.insert(self.last_score, [ahead, ahead, u64::MAX]);
            self.rest.push(self.last_score);
        }
    }

    fn answer(&self, question: &Question) -> Measures {
        let mut found = Vec::new();
        for walk in &question.0 {
            found.push((walk.from, self.rank(walk.from)));
            for &distance in &walk.distances {
                let distance = usize::try_from(distance).unwrap();
                let is_mixed = self.aside.last() >= Some(&walk.from);
                let find = |part: &[u64], from, distance: usize| part.get(before(part, from) + distance).copied();
                let half = distance.div_ceil(2) - 1;
                let (in_rest, in_aside) = if is_mixed {
                    (find(&self.rest, walk.from + 1, half), find(&self.aside, walk.from + 1, half))
                } else {
                    (find(&self.rest, walk.from, distance), None)
                };
                found.extend(in_rest.into_iter().chain(in_aside).min().map(|score| (score, self.rank(score))));
            }
        }
        found.retain(|(score, _)| *score > 0);
        found.sort_unstable();
        found.dedup();
        let last = self.rest.last().max(self.aside.last()).copied().unwrap_or(0);
        Measures { history: (1, 1), length: small(self.len()), last, found }
    }

    /// One look of at most `most` questions; how many it took if the keeper was content.
    fn look(&self, keeper: &mut SketchKeeper, most: usize) -> Option<usize> {
        let mut question = keeper.begin();
        for asked in 1..=most {
            let look_ups: usize = question.0.iter().map(|walk| 1 + walk.distances.len()).sum();
            assert!(look_ups <= 160, "{look_ups} look-ups in one run");
            match keeper.take(&self.answer(&question)) {
                Some(next) => question = next,
                None => return Some(asked),
            }
        }
        None
    }

    /// Tells everybody their place.
    fn tell(&mut self, sketch: &RankSketch, is_content: bool) -> Result<(), TestCaseError> {
        let mut everybody: Vec<u64> = self.rest.iter().chain(&self.aside).copied().collect();
        everybody.sort_unstable();
        // Of a long line the front and every so manieth behind.
        let every = everybody.len() / 3_000 + 1;
        let told = everybody.into_iter().enumerate().filter(|(rank, _)| *rank < 1_100 || rank.is_multiple_of(every));
        for (rank, score) in told {
            let rank = rank as u64;
            let [at_joining, told, told_without] = self.told.get_mut(&score).unwrap();
            let known = sketch.ahead_of(Score(score)).unwrap_or(u64::MAX);
            let ahead = known.min(*at_joining);
            prop_assert!(ahead <= *told, "{score} rises from {told} to {ahead}, is {rank}");
            prop_assert!(known <= *told_without, "{score} rises from {told_without} to {known}, is {rank}");
            prop_assert!(ahead >= rank, "{score} is told {ahead}, is {rank}");
            let most = if rank < 1_000 { 0 } else { rank / 1_000 };
            prop_assert!(!is_content || ahead - rank <= most, "{score} is told {ahead}, is {rank}");
            (*told, *told_without) = (ahead, known);
        }
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Step {
    Join(usize),
    Call(usize),
    /// Every so many of a stretch of the line leave.
    Leave {
        from: f64,
        count: usize,
        every: usize,
    },
    SetAside(usize),
    /// Every so many of those set aside come back.
    Return(usize),
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_usize..4_000).prop_map(Step::Join),
        3 => (1_usize..600).prop_map(Step::Call),
        2 => (0.0..1.0, 1_usize..3_000, 1_usize..9).prop_map(|(from, count, every)| Step::Leave { from, count, every }),
        1 => (1_usize..1_500).prop_map(Step::SetAside),
        1 => (1_usize..4).prop_map(Step::Return),
        2 => Just(Step::Look),
    ];
    prop::collection::vec(step, 1..30)
}

fn play(line: &mut Line, step: &Step) {
    match *step {
        Step::Join(count) => line.join(count),
        Step::Call(count) => drop(line.rest.drain(..count.min(line.rest.len()))),
        Step::Leave { from, count, every } => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let first = (from * line.rest.len() as f64) as usize;
            let mut at = 0_usize;
            line.rest.retain(|_| {
                at += 1;
                at <= first || at > first + count || !at.is_multiple_of(every)
            });
        }
        Step::SetAside(count) => {
            let gone: Vec<u64> = line.rest.drain(..count.min(line.rest.len())).collect();
            line.aside.extend(gone);
            line.aside.sort_unstable();
        }
        Step::Return(every) => {
            let mut at = 0_usize;
            let (stay, back): (Vec<u64>, Vec<u64>) = line.aside.drain(..).partition(|_| {
                at += 1;
                !at.is_multiple_of(every)
            });
            line.aside = stay;
            line.rest.extend(back);
            line.rest.sort_unstable();
        }
        Step::Look => {}
    }
}

/// Looks until the keeper is content, and holds it to that within so many looks.
fn settle(line: &mut Line, keeper: &mut SketchKeeper, looks: usize) -> Result<(), TestCaseError> {
    for look in 0..looks {
        let is_content = line.look(keeper, 8).is_some();
        if look % 8 == 0 || is_content {
            line.tell(&keeper.sketch(), is_content)?;
        }
        if is_content {
            return Ok(());
        }
    }
    Err(TestCaseError::fail(format!("{} points are not enough for {}", keeper.sketch().points(), line.len())))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn positions_never_rise_are_never_too_low_and_get_close(steps in steps()) {
        let (mut line, mut keeper) = (Line { last_score: 1_000, ..Line::default() }, SketchKeeper::default());
        for step in &steps {
            play(&mut line, step);
            // In a hurry, in between.
            line.look(&mut keeper, 2);
            line.tell(&keeper.sketch(), false)?;
            if matches!(step, Step::Look) {
                settle(&mut line, &mut keeper, 20)?;
            }
        }
        settle(&mut line, &mut keeper, 20)?;
        prop_assert!(keeper.sketch().points() <= line.len() + 1);
    }
}

#[test]
fn a_million_are_told_closely_by_a_bounded_number_of_points() {
    let (mut line, mut keeper) = (Line { last_score: 1_000, ..Line::default() }, SketchKeeper::default());
    line.join(1_000_000);
    settle(&mut line, &mut keeper, 28).unwrap();
    assert!(keeper.sketch().points() < 11_000, "{}", keeper.sketch().points());
    // 100 called a second, and 20 a second give up anywhere.
    for look in 0..60 {
        line.rest.drain(..25);
        for leave in 0..5 {
            line.rest.remove((look * 5 + leave) * 3_163);
        }
        line.look(&mut keeper, 8);
    }
    settle(&mut line, &mut keeper, 2).unwrap();
    // A third gives up.
    let mut at = 0_usize;
    line.rest.retain(|_| {
        at += 1;
        !at.is_multiple_of(3)
    });
    settle(&mut line, &mut keeper, 40).unwrap();
    assert!(keeper.sketch().points() < 11_000, "{}", keeper.sketch().points());
}

#[test]
fn an_empty_line_knows_nobody() {
    let (line, mut keeper) = (Line::default(), SketchKeeper::default());
    assert_eq!(line.look(&mut keeper, 8), Some(1));
    assert_eq!(keeper.sketch().ahead_of(Score(7)), None);
    assert_eq!(keeper.sketch().points(), 0);
}

#[test]
fn another_history_starts_from_nothing() {
    let (mut line, mut keeper) = (Line { last_score: 1_000, ..Line::default() }, SketchKeeper::default());
    line.join(500);
    settle(&mut line, &mut keeper, 3).unwrap();
    assert_eq!(keeper.sketch().ahead_of(Score(line.last_score)), Some(499));
    let empty = Measures { history: (1, 2), length: 0, last: 0, found: Vec::new() };
    assert_eq!(keeper.take(&empty), None);
    assert_eq!(keeper.sketch().ahead_of(Score(line.last_score)), None);
}

#[test]
fn places_that_come_back_late_are_counted() {
    let (mut line, mut keeper) = (Line { last_score: 1_000, ..Line::default() }, SketchKeeper::default());
    line.join(5_000);
    let lost: Vec<u64> = line.rest.drain(2_000..2_040).collect();
    settle(&mut line, &mut keeper, 20).unwrap();
    line.rest.extend(lost);
    line.rest.sort_unstable();
    for look in 0.. {
        assert!(look < 40, "not found out");
        line.look(&mut keeper, 8);
        let off = |(rank, score): (usize, &u64)| {
            keeper
                .sketch()
                .ahead_of(Score(*score))
                .is_none_or(|ahead| ahead.abs_diff(rank as u64) > rank as u64 / 1_000)
        };
        if !line.rest.iter().enumerate().take(4_990).any(off) {
            break;
        }
    }
}

#[test]
fn an_outline_has_front_and_end_and_few_points() {
    let (mut line, mut keeper) = (Line { last_score: 1_000, ..Line::default() }, SketchKeeper::default());
    line.join(50_000);
    settle(&mut line, &mut keeper, 20).unwrap();
    let outline = keeper.sketch().outline(256);
    assert!((100..=256).contains(&outline.len()), "{}", outline.len());
    assert!(outline[0].0 <= 1);
    assert_eq!(outline.last().map(|end| end.1), keeper.sketch().outline(2).last().map(|end| end.1));
    assert!(outline.is_sorted());
    assert!(outline.windows(2).all(|pair| pair[1].0 <= pair[0].0 + 1 + pair[0].0 / 10), "{outline:?}");
    assert_eq!(RankSketch::default().outline(256), []);
}
