//! What the stories share: real servers that stop with the test.

pub mod redis_server;
