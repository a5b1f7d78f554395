//! What the stories share: real servers that stop with the test.

pub mod box_office;
pub mod browser;
pub mod eventually;
pub mod fake_provider;
pub mod house;
pub mod http;
#[expect(dead_code, reason = "the clock comes into use with the field cases")]
pub mod node;
pub mod origin;
pub mod program;
pub mod redis_client;
pub mod redis_cluster;
pub mod redis_server;
pub mod watched_engine;
pub mod wire;
