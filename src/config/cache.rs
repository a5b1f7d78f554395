//! Which of the shop's pages may be kept, and for whom.

use super::{file::CacheTable, problems::Problems, room::check_prefix};

/// Pages under this prefix are kept as long as the origin says, and asked for once however many want them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRule {
    /// Prefix of the path, matched at a segment boundary, in this very spelling.
    pub path_prefix: String,
    /// Whether those who are not admitted get them too, uncounted. The origin is then asked without cookies and told of no
    /// visitor, whoever asks.
    pub for_everyone: bool,
}

impl CacheRule {
    /// Checks one table of the file. What is wrong is noted in `problems`.
    pub(super) fn check(table: CacheTable, field: &impl Fn(&str) -> String, problems: &mut Problems) -> Option<Self> {
        let Some(path_prefix) = table.path_prefix else {
            problems
                .add(field("cache: path_prefix is missing: which pages may be kept? Such as path_prefix = \"/event\""));
            return None;
        };
        check_prefix(&path_prefix, &field("cache path_prefix"), problems);
        problems.check(!table.for_everyone || path_prefix != "/", || {
            field("cache: for_everyone with path_prefix \"/\" would let everybody read the whole shop: name the pages")
        });
        Some(Self { path_prefix, for_everyone: table.for_everyone })
    }
}
