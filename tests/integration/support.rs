//! What the stories share: real servers that stop with the test.

pub mod box_office;
pub mod fake_provider;
pub mod redis_server;
