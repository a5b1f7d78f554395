//! From the client's reply values to ours.

use bytes::Bytes;
use redis::{ErrorKind, RedisError};

use crate::store::Value;

/// Converts a reply of the RESP2 protocol. An error anywhere in it makes the whole an error, as in process.
pub fn convert(reply: redis::Value) -> Result<Value, RedisError> {
    Ok(match reply {
        redis::Value::Nil => Value::Nil,
        redis::Value::Int(number) => Value::Int(number),
        redis::Value::BulkString(bytes) => Value::Bulk(Bytes::from(bytes)),
        redis::Value::Okay => Value::Status("OK".to_owned()),
        redis::Value::SimpleString(text) => Value::Status(text),
        redis::Value::Array(items) => Value::Array(items.into_iter().map(convert).collect::<Result<_, _>>()?),
        redis::Value::ServerError(error) => return Err(error.into()),
        _ => return Err((ErrorKind::UnexpectedReturnType, "a reply that is not RESP2").into()),
    })
}
