//! The store: whatever runs our Lua scripts atomically. It knows no key and no script of its own.
//!
//! All shared state changes inside scripts from `lua/`, and those scripts are the only implementation. An
//! [`Engine`] has one method: run this script with these keys and arguments. Two engines run them: the
//! [`in_process`] one, which needs nothing installed, and [`redis_engine`]; a third, `fred_engine`, is the second by
//! another client, compiled in with the feature `fred`.

#[cfg(feature = "fred")]
pub mod fred_engine;
pub mod in_process;
pub mod redis_address;
pub mod redis_engine;
mod redis_rules;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};

/// One Lua script: a file of `lua/` whose name ends with its key count.
pub struct Script {
    file: &'static str,
    source: &'static str,
    sha1: OnceLock<String>,
}

impl Script {
    /// Binds a file name such as `join-8.lua` to its text.
    pub const fn new(file: &'static str, source: &'static str) -> Self {
        Self { file, source, sha1: OnceLock::new() }
    }

    /// The file's name in `lua/`.
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// The Lua text.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// How many keys it takes, from the file's name.
    pub fn key_count(&self) -> Option<usize> {
        self.file.strip_suffix(".lua")?.rsplit_once('-')?.1.parse().ok()
    }

    /// The text's SHA-1 in hex, by which Redis knows it.
    pub fn sha1(&self) -> &str {
        self.sha1.get_or_init(|| sha1_smol::Sha1::from(self.source).digest().to_string())
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("file", &self.file).finish_non_exhaustive()
    }
}

/// One script argument. Numbers travel as decimal text, as Redis hands them to Lua.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// A whole number.
    Int(i64),
    /// Text or bytes.
    Bytes(Bytes),
}

impl Arg {
    /// The bytes that Lua sees in `ARGV`.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Int(number) => Bytes::from(number.to_string()),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Arg {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

/// Saturates at `i64::MAX`, which no time or count of ours comes near.
impl From<u64> for Arg {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<&str> for Arg {
    fn from(value: &str) -> Self {
        Self::Bytes(Bytes::copy_from_slice(value.as_bytes()))
    }
}

impl From<String> for Arg {
    fn from(value: String) -> Self {
        Self::Bytes(Bytes::from(value))
    }
}

/// A script's reply, as the Redis protocol knows it (RESP2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// No value; what Lua's `false` and `nil` become.
    Nil,
    /// A whole number; Lua numbers are truncated to these.
    Int(i64),
    /// A string.
    Bulk(Bytes),
    /// A table.
    Array(Vec<Value>),
    /// `OK` and the like.
    Status(String),
}

/// Why a script did not give a reply.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store could not be asked or did not answer in time; the script may still have run. Try again later.
    #[error("the store is not answering: {0}")]
    Unavailable(String),
    /// This store will never do, whatever the wait: a bad address, refused credentials, too old a server.
    #[error("this store cannot be used: {0}")]
    Unusable(String),
    /// The script ran and failed, or gave a reply nobody expects: a defect, or foreign data under our keys.
    #[error("script {script}: {message}")]
    Script {
        /// The script's file name.
        script: &'static str,
        /// What went wrong.
        message: String,
    },
}

impl StoreError {
    /// Whether waiting may cure it.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// Whatever can run a script atomically.
pub trait Engine: Send + Sync + fmt::Debug {
    /// Runs `script` with `keys` (all declared) and `args`, under the engine's own deadline.
    ///
    /// A call that fails with [`StoreError::Unavailable`] may still have run, so scripts are idempotent.
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>>;

    /// Each time `key` runs out, as far as the engine hears of it; `None` when it never does. For those who look
    /// anyway, and would like to know sooner. The stream ends when there will be no more news.
    fn expirations(&self, _key: &str) -> Option<BoxStream<'static, ()>> {
        None
    }
}

/// An engine shared between tasks.
pub type SharedEngine = Arc<dyn Engine>;
