//! The in-process engine against a real Redis: the same commands and scripts, the same answers, the same data.
//!
//! `STANCHION_HISTORIES=20000` plays more histories, `STANCHION_SEED=n` begins with a given one.

mod history;

use std::sync::Arc;

use history::{KEYS, random_history};
use stanchion::{
    clock::SystemClock,
    store::{Arg, Engine as _, Script, SharedEngine, StoreError, Value, in_process::InProcess},
};

use crate::support::{redis_client::RedisClient, redis_server::RedisServer, seeds::seeds};

type Command = Vec<Vec<u8>>;
type Answer = Result<Value, String>;

/// Runs commands, each behind the number of its words. A whole history is one call, so thousands take seconds.
static PLAY: Script = Script::new(
    "play.lua",
    "local replies, at = {}, 1
    while at <= #ARGV do
        local words = {}
        for i = 1, ARGV[at] do words[i] = ARGV[at + i] end
        at = at + #words + 1
        local reply = redis.pcall(unpack(words))
        local failed = type(reply) == 'table' and reply.err
        replies[#replies + 1] = failed and {'error', failed} or {'reply', reply}
    end
    return replies",
);

struct Trio {
    ours: InProcess,
    /// On one server, each in a database of its own.
    theirs: Vec<(RedisClient, SharedEngine)>,
    _server: RedisServer,
}

impl Trio {
    async fn start() -> Self {
        let server = RedisServer::start();
        let mut theirs = Vec::new();
        for (database, client) in RedisClient::ALL.iter().enumerate() {
            theirs.push((*client, client.connect(&format!("{}/{database}", server.url())).await));
        }
        Self { ours: InProcess::new(Arc::new(SystemClock)), theirs, _server: server }
    }

    /// Plays a history; an answer per command by each engine.
    async fn play(&self, history: &[Command]) -> (Vec<Answer>, Vec<(RedisClient, Vec<Answer>)>) {
        let words: Vec<_> = history
            .iter()
            .flat_map(|command| [vec![command.len().to_string().into_bytes()], command.clone()].concat())
            .collect();
        let (ours, theirs) = self.run(&PLAY, &[], &words).await;
        (answers(ours), theirs.into_iter().map(|(client, answer)| (client, answers(answer))).collect())
    }

    async fn run(
        &self,
        script: &'static Script,
        keys: &[String],
        args: &[Vec<u8>],
    ) -> (Answer, Vec<(RedisClient, Answer)>) {
        let args = || args.iter().map(|arg| Arg::Bytes(arg.clone().into())).collect();
        let ours = answer(self.ours.run(script, keys, args()).await);
        let mut theirs = Vec::new();
        for (client, engine) in &self.theirs {
            // A loaded machine may miss a deadline. Whatever is run here may be run again.
            let mut result = engine.run(script, keys, args()).await;
            for _ in 0..10 {
                if !result.as_ref().is_err_and(StoreError::is_transient) {
                    break;
                }
                result = engine.run(script, keys, args()).await;
            }
            theirs.push((*client, answer(result)));
        }
        (ours, theirs)
    }
}

fn answer(result: Result<Value, StoreError>) -> Answer {
    result.map_err(|error| match error {
        StoreError::Script { message, .. } => message,
        other => panic!("{other}"),
    })
}

fn answers(played: Answer) -> Vec<Answer> {
    let Ok(Value::Array(replies)) = played else { panic!("{played:?}") };
    let answer = |reply| match reply {
        Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
            Ok([Value::Bulk(kind), Value::Bulk(text)]) if kind == "error" => {
                Err(String::from_utf8_lossy(&text).into_owned())
            }
            Ok([Value::Bulk(kind), reply]) if kind == "reply" => Ok(reply),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    replies.into_iter().map(answer).collect()
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

#[tokio::test]
async fn random_histories_get_the_same_answers() {
    let trio = Trio::start().await;
    let (mut errors, mut answers) = (0, 0);
    for seed in seeds(2_000) {
        let clean = [vec![b"DEL".to_vec()], KEYS.iter().map(|key| key.as_bytes().to_vec()).collect()].concat();
        let history = [vec![clean], random_history(seed), inspection()].concat();
        let (ours, theirs) = trio.play(&history).await;
        for (client, theirs) in &theirs {
            assert_eq!(theirs.len(), history.len());
            for (played, ((command, ours), theirs)) in history.iter().zip(&ours).zip(theirs).enumerate() {
                assert!(
                    agree(command, ours, theirs),
                    "STANCHION_SEED={seed}\n{}in process: {ours:?}\nby {client:?}: {theirs:?}",
                    shown(&history[..=played])
                );
            }
        }
        answers += ours.len();
        errors += ours.iter().filter(|answer| answer.is_err()).count();
    }
    // A generator gone wrong would compare nothing but complaints.
    assert!(answers == 0 || errors * 2 < answers, "{errors} of {answers} answers were errors");
}

/// What Lua itself and the bridge do: conversions, errors and their texts, the sandbox.
#[tokio::test]
async fn scripts_behave_the_same() {
    let trio = Trio::start().await;
    for text in include_str!("store_differential/scripts.lua").split("---\n") {
        let script: &'static Script = Box::leak(Box::new(Script::new("one-1.lua", text.to_owned().leak())));
        let keys = ["key".to_owned()];
        let args = [b"7".to_vec(), b"a\0\xff".to_vec()];
        // Twice: the second run meets the compiled script and what the first left behind.
        for _ in 0..2 {
            let (ours, theirs) = trio.run(script, &keys, &args).await;
            for (client, theirs) in theirs {
                assert_eq!(ours, theirs, "in process (left) against Redis by {client:?} (right):\n{text}");
            }
        }
    }
}

/// Turns to call the provider are given alike. They are so far apart that the time between two calls changes nothing.
#[tokio::test]
async fn turns_of_the_pacer_are_given_alike() {
    static PACE: Script = Script::new("pace-1.lua", include_str!("../../lua/pace-1.lua"));
    const SECOND: i64 = 1_000_000;
    let trio = Trio::start().await;
    let key = ["pace".to_owned()];
    // How many turns, how far apart, how long one would wait; and how many of them are given, after about how many seconds.
    for (number, (turns, apart, patience, expected)) in [
        (1, 20, 0, (1, 0)),
        (1, 20, 0, (0, 20)),
        (1, 20, 10, (0, 20)),
        (1, 20, 30, (1, 20)),
        (2, 10, 30, (0, 40)),
        (2, 10, 50, (2, 40)),
        // The next is free in sixty seconds, and just about as far ahead as anybody may reserve.
        (1, 500, 90, (1, 60)),
        // Further ahead than that: the clock was set back, and the row begins anew.
        (1, 20, 0, (1, 0)),
        (1, 20, 0, (0, 20)),
    ]
    .into_iter()
    .enumerate()
    {
        let args = [turns, apart * SECOND, patience * SECOND].map(|number| number.to_string().into_bytes());
        let (ours, theirs) = trio.run(&PACE, &key, &args).await;
        for reply in [ours].into_iter().chain(theirs.into_iter().map(|(_, reply)| reply)) {
            let Ok(Value::Array(reply)) = reply else { panic!("call {number}: {reply:?}") };
            let [Value::Int(given), Value::Int(wait)] = reply[..] else { panic!("call {number}: {reply:?}") };
            assert_eq!(given, expected.0, "call {number}");
            // A slow machine may take nine seconds for all of it.
            let least = (expected.1 * SECOND - 9 * SECOND).max(0);
            assert!((least..=expected.1 * SECOND).contains(&wait), "call {number}: {wait} us");
        }
    }
}
