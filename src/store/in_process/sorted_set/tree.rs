//! A treap (a search tree that random priorities keep shallow) whose nodes know the size of their subtree, which is
//! what makes a rank a walk from the root. Nodes live in one vector; positions are ranks, starting at 0.

use std::ops::Range;

use super::Member;

/// No node.
const NONE: u32 = u32::MAX;

struct Node {
    score: f64,
    member: Member,
    priority: u32,
    size: u32,
    left: u32,
    right: u32,
}

/// A sequence of (score, member), kept in whatever order its caller inserts at.
pub struct Tree {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    /// State of a xorshift generator. Priorities need to be unrelated to the keys, not secret.
    random: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), root: NONE, random: 0x9E37_79B9 }
    }
}

impl Tree {
    /// How many leading entries satisfy `before`, which must hold for a prefix of the sequence.
    pub fn partition_point(&self, before: impl Fn(f64, &[u8]) -> bool) -> usize {
        let (mut at, mut passed) = (self.root, 0);
        while let Some(node) = self.node(at) {
            if before(node.score, &node.member) {
                passed += self.size(node.left) + 1;
                at = node.right;
            } else {
                at = node.left;
            }
        }
        passed
    }

    /// Inserts an entry so that it has rank `at`.
    pub fn insert(&mut self, at: usize, score: f64, member: Member) {
        let node = self.allocate(score, member);
        let (before, after) = self.split(self.root, at);
        let before = self.merge(before, node);
        self.root = self.merge(before, after);
    }

    /// Removes the entries with these ranks and gives them back in order.
    pub fn remove(&mut self, ranks: &Range<usize>) -> Vec<(Member, f64)> {
        let removed = self.iter_from(ranks.start).take(ranks.len()).map(|(m, s)| (m.clone(), s)).collect();
        let (rest, after) = self.split(self.root, ranks.end);
        let (before, cut) = self.split(rest, ranks.start);
        self.root = self.merge(before, after);
        self.release(cut);
        removed
    }

    /// The entries in order, from this rank on.
    pub fn iter_from(&self, mut rank: usize) -> Iter<'_> {
        let (mut pending, mut at) = (Vec::new(), self.root);
        while let Some(node) = self.node(at) {
            let left = self.size(node.left);
            if rank <= left {
                pending.push(at);
                at = node.left;
            } else {
                rank -= left + 1;
                at = node.right;
            }
        }
        Iter { tree: self, pending }
    }

    fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    fn size(&self, at: u32) -> usize {
        self.node(at).map_or(0, |node| node.size as usize)
    }

    /// Splits the subtree at `root` into its first `count` entries and the rest.
    fn split(&mut self, root: u32, count: usize) -> (u32, u32) {
        let Some(node) = self.node(root) else { return (NONE, NONE) };
        let (left, right) = (node.left, node.right);
        let before = self.size(left);
        if count <= before {
            let (first, rest) = self.split(left, count);
            self.link(root, rest, right);
            (first, root)
        } else {
            let (first, rest) = self.split(right, count - before - 1);
            self.link(root, left, first);
            (root, rest)
        }
    }

    /// Joins two subtrees, all of `first` before all of `second`.
    fn merge(&mut self, first: u32, second: u32) -> u32 {
        let (Some(a), Some(b)) = (self.node(first), self.node(second)) else {
            return if first == NONE { second } else { first };
        };
        if a.priority >= b.priority {
            let (left, right) = (a.left, a.right);
            let right = self.merge(right, second);
            self.link(first, left, right);
            first
        } else {
            let (left, right) = (b.left, b.right);
            let left = self.merge(first, left);
            self.link(second, left, right);
            second
        }
    }

    fn link(&mut self, at: u32, left: u32, right: u32) {
        let size = self.node(left).map_or(0, |n| n.size) + self.node(right).map_or(0, |n| n.size) + 1;
        if let Some(node) = self.nodes.get_mut(at as usize) {
            (node.left, node.right, node.size) = (left, right, size);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "four billion nodes do not fit in memory")]
    fn allocate(&mut self, score: f64, member: Member) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let node = Node { score, member, priority: self.random, size: 1, left: NONE, right: NONE };
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            return at;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    /// Frees a whole subtree.
    fn release(&mut self, root: u32) {
        let mut pending = vec![root];
        while let Some(at) = pending.pop() {
            let Some(node) = self.nodes.get_mut(at as usize) else { continue };
            node.member = Member::default();
            pending.extend([node.left, node.right]);
            self.free.push(at);
        }
    }
}

/// Walks a [`Tree`] in order.
pub struct Iter<'a> {
    tree: &'a Tree,
    /// Nodes whose left side is done and that are themselves still to come, the next one last.
    pending: Vec<u32>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Member, f64);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.tree.node(self.pending.pop()?)?;
        let mut at = node.right;
        while let Some(below) = self.tree.node(at) {
            self.pending.push(at);
            at = below.left;
        }
        Some((&node.member, node.score))
    }
}
