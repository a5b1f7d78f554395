//! The Lua VM: compiles scripts once, runs them in a sandbox, and connects `redis.call` to the keyspace.

use std::collections::HashMap;

use bytes::Bytes;
use mlua::{Function, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table};

use super::{commands, keyspace::Keyspace, number::format_float, reply};
use crate::store::{Arg, Script, Value};

/// One Lua VM with the keyspace its scripts work on.
pub struct Vm {
    lua: Lua,
    environment: Table,
    run: Function,
    /// By SHA-1, as Redis keeps them.
    compiled: HashMap<String, Function>,
}

impl Vm {
    /// A VM with an empty keyspace.
    pub fn new() -> mlua::Result<Self> {
        let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, LuaOptions::default())?;
        lua.set_app_data(Keyspace::default());
        let command = lua.create_function(command)?;
        let sha1hex = lua
            .create_function(|_, text: LuaString| Ok(sha1_smol::Sha1::from(&*text.as_bytes()).digest().to_string()))?;
        let sandbox = lua.load(include_str!("sandbox.lua")).set_name("=sandbox");
        let (environment, run) = sandbox.call((command, sha1hex))?;
        Ok(Self { lua, environment, run, compiled: HashMap::new() })
    }

    /// Runs a script at one instant. Fails with the text of its error reply.
    pub fn run(&mut self, now_micros: u64, script: &Script, keys: &[String], args: Vec<Arg>) -> Result<Value, String> {
        let result = self.call(now_micros, script, keys, args).map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => {
                format!("ERR Error compiling script (new function): {message}")
            }
            other => format!("ERR {other}"),
        });
        match result? {
            (true, reply) => reply::from_lua(reply),
            (false, mlua::Value::String(text)) => Err(text.to_string_lossy()),
            (false, _) => Err("ERR unknown error".to_owned()),
        }
    }

    fn call(
        &mut self,
        now_micros: u64,
        script: &Script,
        keys: &[String],
        args: Vec<Arg>,
    ) -> mlua::Result<(bool, mlua::Value)> {
        let function = self.compile(script)?;
        if let Some(mut keyspace) = self.lua.app_data_mut::<Keyspace>() {
            keyspace.begin(now_micros);
        }
        let keys = self.lua.create_sequence_from(keys.iter().map(String::as_str))?;
        let args: Vec<Bytes> = args.into_iter().map(Arg::into_bytes).collect();
        let values = args.iter().map(|arg| reply::element(&self.lua, arg)).collect::<mlua::Result<Vec<_>>>()?;
        let values = self.lua.create_sequence_from(values)?;
        self.run.call((function, script.sha1(), keys, values))
    }

    fn compile(&mut self, script: &Script) -> mlua::Result<Function> {
        if let Some(function) = self.compiled.get(script.sha1()) {
            return Ok(function.clone());
        }
        // Flags for Redis, such as `#!lua flags=allow-oom`; the line's end stays, so that lines keep their numbers.
        let source = script.source();
        let flags = if source.starts_with("#!") { source.find('\n').unwrap_or(source.len()) } else { 0 };
        let chunk = self.lua.load(&source[flags..]).set_name("@user_script");
        let function = chunk.set_environment(self.environment.clone()).into_function()?;
        self.compiled.insert(script.sha1().to_owned(), function.clone());
        Ok(function)
    }
}

/// What `redis.call` and `redis.pcall` run: `true` and the reply, or `false` and the error's text.
fn command(lua: &Lua, args: MultiValue) -> mlua::Result<(bool, mlua::Value)> {
    let refused = |text: String| Ok((false, mlua::Value::String(lua.create_string(text)?)));
    if args.is_empty() {
        return refused("ERR Please specify at least one argument for this redis lib call".to_owned());
    }
    let Some(words) = args.into_iter().map(word).collect::<Option<Vec<_>>>() else {
        return refused("ERR Lua redis lib command arguments must be strings or integers".to_owned());
    };
    let Some(mut keyspace) = lua.app_data_mut::<Keyspace>() else {
        return refused("ERR no keyspace".to_owned());
    };
    match commands::execute(&mut keyspace, &words) {
        Ok(value) => Ok((true, reply::to_lua(lua, &value)?)),
        Err(error) => refused(error.to_string()),
    }
}

/// One word of a command; numbers are written as Redis writes them.
fn word(value: mlua::Value) -> Option<Bytes> {
    match value {
        mlua::Value::String(text) => Some(Bytes::copy_from_slice(&text.as_bytes())),
        // What a double holds exactly needs no rounding.
        mlua::Value::Integer(number) if number.unsigned_abs() < 1 << 53 => Some(number.to_string().into()),
        #[expect(clippy::cast_precision_loss, reason = "it was a double before")]
        mlua::Value::Integer(number) => Some(format_float(number as f64).into()),
        mlua::Value::Number(number) => Some(format_float(number).into()),
        _ => None,
    }
}
