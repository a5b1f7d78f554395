//! The in-process engine against a real Redis: the same commands and scripts, the same answers, the same data.
//!
//! `STANCHION_HISTORIES=20000` plays more histories, `STANCHION_SEED=n` begins with a given one.

mod history;

use std::sync::Arc;

use history::{KEYS, random_history};
use stanchion::{
    clock::SystemClock,
    store::{Arg, Engine, Script, StoreError, Value, in_process::InProcess, redis_engine::RedisEngine},
};

use crate::support::redis_server::RedisServer;

type Command = Vec<Vec<u8>>;
type Answer = Result<Value, String>;

static CALL: Script = Script::new("call.lua", "return redis.pcall(unpack(ARGV))");

struct Pair {
    ours: InProcess,
    theirs: RedisEngine,
    _server: RedisServer,
}

impl Pair {
    async fn start() -> Self {
        let server = RedisServer::start();
        let theirs = RedisEngine::connect(&server.url()).await.unwrap();
        Self { ours: InProcess::new(Arc::new(SystemClock)), theirs, _server: server }
    }

    async fn call(&self, command: &[Vec<u8>]) -> (Answer, Answer) {
        self.run(&CALL, &[], command).await
    }

    async fn run(&self, script: &'static Script, keys: &[String], args: &[Vec<u8>]) -> (Answer, Answer) {
        let args = || args.iter().map(|arg| Arg::Bytes(arg.clone().into())).collect();
        (answer(self.ours.run(script, keys, args()).await), answer(self.theirs.run(script, keys, args()).await))
    }
}

fn answer(result: Result<Value, StoreError>) -> Answer {
    result.map_err(|error| match error {
        StoreError::Script { message, .. } => message,
        other => panic!("{other}"),
    })
}

/// Equal, or two times left that differ by no more than the time between asking one and the other.
fn agree(command: &[Vec<u8>], ours: &Answer, theirs: &Answer) -> bool {
    let slack = match &command[0].to_ascii_uppercase()[..] {
        b"TTL" => 2,
        b"PTTL" => 2_000,
        _ => return ours == theirs,
    };
    match (ours, theirs) {
        (Ok(Value::Int(ours @ 0..)), Ok(Value::Int(theirs @ 0..))) => ours.abs_diff(*theirs) <= slack,
        _ => ours == theirs,
    }
}

/// Commands that show all there is under the keys.
fn inspection() -> Vec<Command> {
    let questions: [&[&str]; 5] = [&["TYPE"], &["TTL"], &["GET"], &["HGETALL"], &["ZRANGE", "0", "-1", "WITHSCORES"]];
    let ask = |key: &str, words: &[&str]| {
        let words = [&words[..1], &[key], &words[1..]].concat();
        words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
    };
    KEYS.iter().flat_map(|key| questions.iter().map(move |words| ask(key, words))).collect()
}

fn shown(commands: &[Command]) -> String {
    let word = |word: &Vec<u8>| format!("\"{}\"", word.escape_ascii());
    let line = |command: &Command| command.iter().map(word).collect::<Vec<_>>().join(" ") + "\n";
    commands.iter().map(line).collect::<Vec<_>>().concat()
}

fn number_from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number")))
}

#[tokio::test]
async fn random_histories_get_the_same_answers() {
    let pair = Pair::start().await;
    let first_seed = number_from_env("STANCHION_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let (mut errors, mut answers) = (0, 0);
    for seed in (first_seed..).take(usize::try_from(number_from_env("STANCHION_HISTORIES").unwrap_or(300)).unwrap()) {
        let clean = [vec![b"DEL".to_vec()], KEYS.iter().map(|key| key.as_bytes().to_vec()).collect()].concat();
        let history = [vec![clean], random_history(seed), inspection()].concat();
        for (played, command) in history.iter().enumerate() {
            let (ours, theirs) = pair.call(command).await;
            assert!(
                agree(command, &ours, &theirs),
                "STANCHION_SEED={seed}\n{}in process: {ours:?}\nRedis:      {theirs:?}",
                shown(&history[..=played])
            );
            answers += 1;
            errors += usize::from(theirs.is_err());
        }
    }
    // A generator gone wrong would compare nothing but complaints.
    assert!(answers == 0 || errors * 2 < answers, "{errors} of {answers} answers were errors");
}

/// What Lua itself and the bridge do: conversions, errors and their texts, the sandbox.
#[tokio::test]
async fn scripts_behave_the_same() {
    let pair = Pair::start().await;
    for text in include_str!("store_differential/scripts.lua").split("---\n") {
        let script: &'static Script = Box::leak(Box::new(Script::new("one-1.lua", text.to_owned().leak())));
        let keys = ["key".to_owned()];
        let args = [b"7".to_vec(), b"a\0\xff".to_vec()];
        // Twice: the second run meets the compiled script and what the first left behind.
        for _ in 0..2 {
            let (ours, theirs) = pair.run(script, &keys, &args).await;
            assert_eq!(ours, theirs, "in process (left) against Redis (right):\n{text}");
        }
    }
}
