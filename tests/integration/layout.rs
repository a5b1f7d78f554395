//! Holds the shape of the crate: which module may use which, and how long a file may get.
//!
//! The layers are read from the sentence in `src/lib.rs` that tells people about them, so that the two cannot disagree.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Sell tickets and take money; know nothing of the waiting room.
const SHOP: [&str; 2] = ["box_office", "pay_sandbox"];
/// All that the shop may use.
const SHOP_MAY_USE: [&str; 7] = ["clock", "shutdown", "telemetry", "embed", "listener", "store", "config"];
/// Sells by the shop's inventory, to compare it with other ways.
const RACE: &str = "race";
/// A client of both: reads the shop's views and the tokens, but nothing that runs a room. Only its simulation, which
/// plays a room on virtual time, takes the steps of admission.
const REHEARSE: &str = "rehearse";
const SIMULATION: &str = "src/rehearse/simulate";

const LONGEST_FILE: usize = 400;
const LONGEST_MEDIAN: usize = 200;
const LONGEST_MAIN: usize = 39;

#[test]
fn dependencies_point_one_way() {
    let layers = layers(&read("src/lib.rs"));
    let graph = graph();
    let mut broken = Vec::new();
    for (user, used_in) in &graph {
        for (used, files) in used_in {
            if let Err(rule) = may_use(&layers, user, used) {
                let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                broken.push(format!("{} uses `{used}`: {rule}", files.join(", ")));
            }
        }
    }
    for module in top_level_modules(&sources()) {
        if !layers.iter().flatten().chain(&[RACE.to_owned(), REHEARSE.to_owned()]).any(|name| *name == module)
            && !SHOP.contains(&&*module)
        {
            broken.push(no_place(&module));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_rules_tell_right_from_wrong() {
    let layers = layers(&read("src/lib.rs"));
    let right = [
        ("tokens", "queue"),
        ("config", "tokens"),
        ("room", "gateway"),
        ("cli", "pay_sandbox"),
        ("box_office", "config"),
        ("rehearse", "box_office"),
        ("rehearse", "tokens"),
        ("rehearse", "admission"),
        ("race", "box_office"),
        ("race", "store"),
    ];
    let wrong = [
        ("queue", "config"),
        ("store", "queue"),
        ("gateway", "room"),
        ("admission", "gateway"),
        ("admin", "cli"),
        ("box_office", "queue"),
        ("box_office", "pages"),
        ("pay_sandbox", "box_office"),
        ("gateway", "box_office"),
        ("rehearse", "gateway"),
        ("box_office", "race"),
        ("race", "queue"),
        ("room", "unheard_of"),
    ];
    for (user, wanted) in right {
        assert_eq!(may_use(&layers, user, wanted), Ok(()), "{user} uses {wanted}");
    }
    for (user, wanted) in wrong {
        assert!(may_use(&layers, user, wanted).is_err(), "{user} may use {wanted}");
    }
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let graph = graph();
    for start in graph.keys() {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&str> = uses_of(&graph, start).collect();
        while let Some(module) = next.pop() {
            assert_ne!(
                module, start,
                "`{start}` uses itself by way of {reached:?}: one of these must not know the other"
            );
            if reached.insert(module) {
                next.extend(uses_of(&graph, module));
            }
        }
    }
}

#[test]
fn only_the_simulation_runs_a_room() {
    let uses = graph().remove(REHEARSE).unwrap();
    let admission = uses.get("admission").expect("the simulation uses the steps of admission");
    for file in admission {
        assert!(file.starts_with(SIMULATION), "{}: a rehearsal is a client and runs no part of a room", file.display());
    }
}

#[test]
fn the_shop_knows_no_room_settings() {
    for (file, text) in sources().into_iter().filter(|(file, _)| SHOP.contains(&module_of(file).as_str())) {
        let text = without_comments(&text);
        let found = ["RoomConfig", "config::room"].into_iter().find(|word| text.contains(word));
        assert_eq!(found, None, "{}: the shop must sell the same when no waiting room is there", file.display());
    }
}

#[test]
fn files_stay_short() {
    let mut lengths = Vec::new();
    for (file, text) in sources() {
        let lines = text.lines().count();
        let most = if file.ends_with("src/main.rs") { LONGEST_MAIN } else { LONGEST_FILE };
        assert!(lines <= most, "{} has {lines} lines, {most} is the most: split it by concept", file.display());
        lengths.push(lines);
    }
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    println!("{} files in src, median length {median} lines, longest {}", lengths.len(), lengths[lengths.len() - 1]);
    assert!(median <= LONGEST_MEDIAN, "src has a median of {median} lines a file, {LONGEST_MEDIAN} is the most");
}

#[test]
fn modules_are_named_after_their_file() {
    for (file, _) in sources() {
        assert!(!file.ends_with("mod.rs"), "{}: put it beside its folder, as `foo.rs` beside `foo/`", file.display());
    }
}

#[test]
fn the_scan_finds_every_way_to_name_a_module() {
    let found = |text: &str, depth: usize| {
        let all = ["clock", "queue", "store", "pages"].map(str::to_owned).into();
        named_modules(text, depth, &all).into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("use crate::clock::Clock;", 1), "clock");
    assert_eq!(
        found("use crate::{\n    clock::{self, Clock},\n    store, queue::types::Score,\n};", 2),
        "clock queue store"
    );
    assert_eq!(found("fn f(e: &crate::store::Engine, n: super::Count) {}", 2), "store");
    assert_eq!(found("use super::super::queue::Score;", 2), "queue");
    assert_eq!(found("use super::{clock, store::Script};", 1), "clock store");
    assert_eq!(found("use super::pages::Page;", 2), "", "a sibling of the same name");
    assert_eq!(found("mod tests {\n    use super::pages::Page;\n}", 1), "", "an own child of the same name");
    assert_eq!(found("//! As in [`crate::clock::Clock`].\n// use crate::queue;", 1), "", "comments");
    assert_eq!(found("use $crate::clock; use mycrate::store; use a::super::clock;", 1), "", "others' names");
}

/// Why a module may not use another.
fn may_use(layers: &[Vec<String>], user: &str, wanted: &str) -> Result<(), String> {
    let layer = |module: &str| layers.iter().position(|layer| layer.iter().any(|name| name == module));
    let place = |module: &str| layer(module).ok_or_else(|| no_place(module));
    let (allowed, rule) = match (user, wanted) {
        ("cli", _) | (RACE | REHEARSE, "box_office") => return Ok(()),
        (_, "cli" | RACE | REHEARSE) => (false, "only the command line wires it up"),
        _ if SHOP.contains(&user) || user == RACE => {
            (SHOP_MAY_USE.contains(&wanted), "the shop knows nothing of the waiting room")
        }
        _ if SHOP.contains(&wanted) => (false, "the waiting room knows nothing of the shop"),
        (REHEARSE, _) => (place(wanted)? <= place("admission")?, "a rehearsal is a client and answers no visitor"),
        _ => (place(wanted)? <= place(user)?, "dependencies point one way, see src/lib.rs"),
    };
    if allowed { Ok(()) } else { Err(rule.to_owned()) }
}

fn no_place(module: &str) -> String {
    format!("`{module}` has no place among the layers that src/lib.rs tells of: give it one")
}

/// The groups between the arrows of the sentence that begins "Dependencies point one way", lowest first.
fn layers(lib: &str) -> Vec<Vec<String>> {
    let prose: String = lib.lines().filter_map(|line| line.strip_prefix("//!")).collect();
    let (_, sentence) =
        prose.split_once("Dependencies point one way: ").expect("src/lib.rs no longer tells the layers");
    let (sentence, _) = sentence.split_once('.').unwrap();
    let names = |group: &str| group.split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect();
    let layers: Vec<Vec<String>> = sentence.split('←').map(names).collect();
    assert!(layers.len() > 3 && layers.iter().flatten().any(|name| name == "gateway"), "not the layers: {layers:?}");
    layers
}

/// For each top-level module the others it uses, and in which files.
type Graph = BTreeMap<String, BTreeMap<String, Vec<PathBuf>>>;

fn graph() -> Graph {
    let sources = sources();
    let all = top_level_modules(&sources);
    let mut graph = Graph::new();
    for (file, text) in sources {
        let module = module_of(&file);
        let depth = file.components().count() - 1;
        for used in
            named_modules(&text, depth, &all).into_iter().filter(|used| *used != module && all.contains(&module))
        {
            graph.entry(module.clone()).or_default().entry(used).or_default().push(file.clone());
        }
    }
    assert!(graph.len() > 3, "the scan finds next to nothing, so it tests nothing: {graph:?}");
    graph
}

fn top_level_modules(sources: &[(PathBuf, String)]) -> BTreeSet<String> {
    let roots = ["lib", "main"].map(str::to_owned);
    sources.iter().map(|(file, _)| module_of(file)).filter(|module| !roots.contains(module)).collect()
}

fn uses_of<'a>(graph: &'a Graph, module: &str) -> impl Iterator<Item = &'a str> {
    graph.get(module).into_iter().flat_map(|used| used.keys().map(String::as_str))
}

/// The top-level modules among `all` that a file names, by `crate::` or by enough `super::` from `depth` levels down.
fn named_modules(text: &str, depth: usize, all: &BTreeSet<String>) -> BTreeSet<String> {
    let text = without_comments(text);
    // Inside an inline module every path is one level deeper. Ours stand at the end of their file.
    let inline_from = text.find("mod tests {").unwrap_or(text.len());
    let starts = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "_$:".contains(c));
    let mut heads = BTreeSet::new();
    for (at, name) in text.match_indices("crate::").filter(|(at, _)| starts(*at)) {
        heads.extend(path_heads(&text[at + name.len()..]));
    }
    for (at, _) in text.match_indices("super::").filter(|(at, _)| starts(*at)) {
        let rest = text[at..].trim_start_matches("super::");
        let climbed = (text.len() - at - rest.len()) / "super::".len();
        if climbed == depth + usize::from(at > inline_from) {
            heads.extend(path_heads(rest));
        }
    }
    heads.intersection(all).cloned().collect()
}

/// The first names of the paths that go on here: one, or those of a `{…}` group.
fn path_heads(rest: &str) -> Vec<String> {
    let name =
        |path: &str| path.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let mut heads = vec![name(group)];
    let mut open = 1;
    for (at, character) in group.char_indices() {
        match character {
            '{' => open += 1,
            '}' => open -= 1,
            ',' if open == 1 => heads.push(name(&group[at + 1..])),
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    heads
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The top-level module a file belongs to, from its path such as `src/queue/keys.rs`.
fn module_of(file: &Path) -> String {
    let first = file.components().nth(1).expect("a file in src").as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Every Rust file in `src`, by its path from the crate's root, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut sources = Vec::new();
    let mut folders = vec![PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = read(&path);
                sources.push((path, text));
            }
        }
    }
    sources.sort();
    sources
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
