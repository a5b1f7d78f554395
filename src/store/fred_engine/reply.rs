//! From the client's frames to our values.

use bytes::Bytes;
use fred::types::Resp3Frame;

use crate::store::Value;

/// Converts a reply of the RESP2 protocol, or gives back the server's refusal, `CODE text`. An error anywhere in it
/// makes the whole an error, as in process.
pub fn convert(frame: Resp3Frame) -> Result<Value, String> {
    Ok(match frame {
        Resp3Frame::Null => Value::Nil,
        Resp3Frame::Number { data, .. } => Value::Int(data),
        Resp3Frame::BlobString { data, .. } => Value::Bulk(data),
        Resp3Frame::SimpleString { data, .. } => Value::Status(lossy(&data)),
        Resp3Frame::Array { data, .. } => Value::Array(data.into_iter().map(convert).collect::<Result<_, _>>()?),
        Resp3Frame::SimpleError { data, .. } => return Err(data.to_string()),
        Resp3Frame::BlobError { data, .. } => return Err(lossy(&data)),
        _ => return Err("ERR a reply that is not RESP2".to_owned()),
    })
}

fn lossy(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
