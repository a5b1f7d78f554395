//! Replies between commands, Lua and the caller, by Redis' rules (RESP2).

use bytes::Bytes;
use mlua::{Either, Lua, Table};

use crate::store::Value;

/// A command's reply as Lua sees it: nil is `false`, a status a table.
pub fn to_lua(lua: &Lua, reply: &Value) -> mlua::Result<mlua::Value> {
    Ok(match reply {
        Value::Nil => mlua::Value::Boolean(false),
        #[expect(clippy::cast_precision_loss, reason = "a Lua 5.1 number is a double, in Redis too")]
        Value::Int(number) => mlua::Value::Number(*number as f64),
        Value::Bulk(bytes) => mlua::Value::String(lua.create_string(bytes)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| match item {
                Value::Bulk(bytes) => element(lua, bytes),
                other => Ok(Either::Right(to_lua(lua, other)?)),
            });
            mlua::Value::Table(lua.create_sequence_from(items.collect::<mlua::Result<Vec<_>>>()?)?)
        }
        Value::Status(text) => {
            let table = lua.create_table()?;
            table.raw_set("ok", &**text)?;
            mlua::Value::Table(table)
        }
    })
}

/// A string for a list. Text goes into one at once; a Lua string of our own would cost several times as much.
pub fn element<'a>(lua: &Lua, bytes: &'a [u8]) -> mlua::Result<Either<&'a str, mlua::Value>> {
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => Either::Left(text),
        Err(_) => Either::Right(mlua::Value::String(lua.create_string(bytes)?)),
    })
}

/// A script's result as its caller sees it, or the text of its error reply.
pub fn from_lua(result: mlua::Value) -> Result<Value, String> {
    Ok(match result {
        mlua::Value::Boolean(true) => Value::Int(1),
        mlua::Value::Integer(number) => Value::Int(number),
        mlua::Value::Number(number) => Value::Int(truncate(number)),
        mlua::Value::String(text) => Value::Bulk(Bytes::copy_from_slice(&text.as_bytes())),
        mlua::Value::Table(table) => return from_table(&table),
        _ => Value::Nil,
    })
}

/// C's cast, the way x86 does it: what does not fit becomes the smallest integer.
fn truncate(number: f64) -> i64 {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "that is what it is for")]
    if (-BEYOND..BEYOND).contains(&number) { number as i64 } else { i64::MIN }
}

fn from_table(table: &Table) -> Result<Value, String> {
    if let Ok(text) = table.raw_get::<mlua::LuaString>("err") {
        return Err(text.to_string_lossy());
    }
    if let Ok(text) = table.raw_get::<mlua::LuaString>("ok") {
        return Ok(Value::Status(text.to_string_lossy()));
    }
    // Up to the first nil, which ends a list in Lua.
    let items = (1..).map_while(|index: i64| match table.raw_get(index) {
        Ok(mlua::Value::Nil) | Err(_) => None,
        Ok(item) => Some(from_lua(item)),
    });
    items.collect::<Result<_, _>>().map(Value::Array)
}
