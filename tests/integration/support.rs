//! What the stories share: real servers that stop with the test.

pub mod box_office;
pub mod browser;
pub mod eventually;
pub mod fake_provider;
pub mod house;
pub mod http;
pub mod node;
pub mod origin;
pub mod postgres;
pub mod program;
pub mod redis_client;
pub mod redis_cluster;
pub mod redis_server;
pub mod seeds;
pub mod tls;
pub mod watched_engine;
pub mod watched_program;
pub mod wire;
