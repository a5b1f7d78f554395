//! What the stories share: real servers that stop with the test.

pub mod house;
pub mod http;
pub mod origin;
pub mod redis_server;
pub mod wire;
