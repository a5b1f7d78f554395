//! The scripts' folder: every file says what it is, takes the keys its name promises, and is bound somewhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

const HEADER: [&str; 4] = ["Purpose:", "KEYS:", "ARGV:", "Reply:"];

struct LuaFile {
    name: String,
    text: String,
}

impl LuaFile {
    /// The keys its name promises: `Some(8)` of `join-8.lua`, none of a shared part or of a variable count (`-n`).
    fn promised_keys(&self) -> Option<usize> {
        self.name.strip_suffix(".lua")?.rsplit_once('-')?.1.parse().ok()
    }

    /// The highest `KEYS[…]` it names, header included.
    fn highest_key(&self) -> usize {
        let indices = self.text.split("KEYS[").skip(1).filter_map(|rest| rest.split(']').next()?.parse().ok());
        indices.max().unwrap_or(0)
    }

    /// The comment it starts with.
    fn header(&self) -> Vec<&str> {
        self.text.lines().map_while(|line| line.strip_prefix("--")).collect()
    }
}

fn lua_files() -> Vec<LuaFile> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join("lua")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(path.extension().unwrap(), "lua", "{name} does not belong into lua/");
        files.push(LuaFile { name, text: fs::read_to_string(&path).unwrap() });
    }
    assert!(files.len() >= 11, "where are the scripts? Found {}", files.len());
    files
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_sources(folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            rust_sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_script_states_purpose_keys_arguments_and_reply() {
    for file in lua_files() {
        for field in HEADER {
            let stated = file.header().iter().any(|line| line.trim_start().starts_with(field));
            assert!(stated, "lua/{} starts without a comment line `-- {field} …`", file.name);
        }
    }
}

#[test]
fn every_script_takes_the_keys_its_name_promises() {
    for file in lua_files() {
        if let Some(promised) = file.promised_keys() {
            let highest = file.highest_key();
            assert_eq!(highest, promised, "lua/{} names KEYS[{highest}] at most", file.name);
        }
    }
}

#[test]
fn every_script_is_bound() {
    let mut sources = Vec::new();
    rust_sources(&root().join("src"), &mut sources);
    for file in lua_files() {
        // A macro may put the folder in front.
        let names = [format!("/lua/{}\"", file.name), format!("\"{}\"", file.name)];
        let bound = sources
            .iter()
            .any(|source| source.contains("include_str!") && names.iter().any(|name| source.contains(name)));
        assert!(bound, "no file of src/ binds lua/{} by include_str!", file.name);
    }
}

#[test]
fn scripts_make_no_key_of_their_own() {
    for file in lua_files() {
        let code: Vec<&str> = file.text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
        let makes_key = code.iter().find(|line| line.contains("stanchion:"));
        assert_eq!(makes_key, None, "lua/{} makes a key; all keys must be declared (Redis Cluster)", file.name);
    }
}
