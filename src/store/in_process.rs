//! The in-process engine: the same Lua files in an embedded Lua 5.1, over the few data types and commands they use.
//!
//! Replies, error texts and the conversion of values follow Redis 7, which a differential test holds it to. What it
//! does not have: other commands, `cjson` and the other libraries of Redis' Lua, `math.random`, `redis.log`.
//!
//! | module | holds |
//! | --- | --- |
//! | `vm`, `sandbox.lua` | the Lua VM, what a script sees |
//! | `reply`, `number`, `error` | conversion between Lua, commands and caller |
//! | `commands` | one file per data type |
//! | `keyspace`, `hash`, `sorted_set` | the data, expiry |

mod commands;
mod error;
mod hash;
mod keyspace;
mod number;
mod reply;
mod sorted_set;
mod vm;

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use vm::Vm;

use super::{Arg, Engine, Script, StoreError, Value};
use crate::clock::SharedClock;

/// An engine whose data lives in this process and dies with it.
pub struct InProcess {
    clock: SharedClock,
    /// Scripts run one after the other, as in Redis: each takes some tens of microseconds and never waits.
    /// An error means that the VM could not be built.
    vm: Mutex<Result<Vm, mlua::Error>>,
}

impl InProcess {
    /// An empty store that tells time by `clock`; within one script time stands still.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, vm: Mutex::new(Vm::new()) }
    }

    fn run_now(&self, script: &'static Script, keys: &[String], args: Vec<Arg>) -> Result<Value, StoreError> {
        let failed = |message| StoreError::Script { script: script.file(), message };
        // No command leaves the keyspace half-changed, so a panic elsewhere does not spoil it.
        let mut vm = self.vm.lock().unwrap_or_else(PoisonError::into_inner);
        let vm = vm.as_mut().map_err(|error| failed(format!("the Lua VM did not start: {error}")))?;
        vm.run(self.clock.unix_micros(), script, keys, args).map_err(failed)
    }
}

impl Engine for InProcess {
    fn run<'a>(
        &'a self,
        script: &'static Script,
        keys: &'a [String],
        args: Vec<Arg>,
    ) -> BoxFuture<'a, Result<Value, StoreError>> {
        Box::pin(async move { self.run_now(script, keys, args) })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("clock", &self.clock).finish_non_exhaustive()
    }
}
