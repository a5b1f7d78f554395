use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Insert(u8, i8),
    Remove(u8),
    RemoveRange(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<u8>(), -9_i8..9).prop_map(|(member, score)| Step::Insert(member, score)),
        2 => any::<u8>().prop_map(Step::Remove),
        1 => (0_usize..200, 0_usize..20).prop_map(|(start, len)| Step::RemoveRange(start, len)),
    ]
}

/// The obvious implementation: a sorted vector.
#[derive(Default)]
struct Naive(Vec<(i8, Vec<u8>)>);

impl Naive {
    fn apply(&mut self, step: &Step) {
        match step {
            Step::Insert(member, score) => {
                self.0.retain(|(_, other)| other != &[*member]);
                self.0.push((*score, vec![*member]));
                self.0.sort();
            }
            Step::Remove(member) => self.0.retain(|(_, other)| other != &[*member]),
            Step::RemoveRange(start, len) => {
                let end = (start + len).min(self.0.len());
                self.0.drain((*start).min(end)..end);
            }
        }
    }
}

fn apply(set: &mut SortedSet, step: &Step) {
    match step {
        Step::Insert(member, score) => set.insert(&[*member], f64::from(*score)),
        Step::Remove(member) => drop(set.remove(&[*member])),
        Step::RemoveRange(start, len) => {
            let end = (start + len).min(set.len());
            drop(set.remove_range(&((*start).min(end)..end)));
        }
    }
}

proptest! {
    #[test]
    fn it_equals_a_sorted_vector(steps in proptest::collection::vec(step(), 1..400)) {
        let (mut set, mut naive) = (SortedSet::default(), Naive::default());
        for step in &steps {
            apply(&mut set, step);
            naive.apply(step);
        }
        let all: Vec<_> = set.range(&(0..set.len())).map(|(member, score)| (score, member.to_vec())).collect();
        let expected: Vec<_> = naive.0.iter().map(|(score, member)| (f64::from(*score), member.clone())).collect();
        prop_assert_eq!(all, expected);
        prop_assert_eq!(set.len(), naive.0.len());
        for (rank, (score, member)) in naive.0.iter().enumerate() {
            prop_assert_eq!(set.rank(member), Some(rank));
            prop_assert_eq!(set.score(member), Some(f64::from(*score)));
            prop_assert_eq!(set.range(&(rank..rank + 1)).next().map(|(m, _)| m.to_vec()), Some(member.clone()));
        }
        for score in -10_i8..10 {
            prop_assert_eq!(set.count_below(f64::from(score)), naive.0.iter().filter(|(s, _)| *s < score).count());
            prop_assert_eq!(set.count_up_to(f64::from(score)), naive.0.iter().filter(|(s, _)| *s <= score).count());
        }
        let known: HashSet<_> = naive.0.iter().map(|(_, member)| member[0]).collect();
        for member in (0..=u8::MAX).filter(|member| !known.contains(member)) {
            prop_assert_eq!(set.rank(&[member]), None);
        }
    }
}

/// In score order, the worst case of a tree without balance: a chain of 200,000 would take minutes and the stack.
#[test]
fn members_in_order_do_not_unbalance_it() {
    let mut set = SortedSet::default();
    for number in 0..200_000_u32 {
        set.insert(&number.to_be_bytes(), f64::from(number));
    }
    for number in (0..200_000_u32).step_by(997) {
        assert_eq!(set.rank(&number.to_be_bytes()), Some(number as usize));
    }
    assert_eq!(set.remove_range(&(0..200_000)).len(), 200_000);
    assert!(set.is_empty());
}
