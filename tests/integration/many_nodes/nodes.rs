//! Three gateways with the same keys in front of one shop.

use std::time::Duration;

use http::StatusCode;

use crate::support::{
    browser::Browser,
    http::request,
    origin::{Origin, Playing},
    program::Running,
    redis_server::{RedisServer, free_port},
};

pub const CAPACITY: u64 = 100;
pub const RATE: u64 = 200;
pub const BURST: u64 = 20;

pub struct Nodes {
    pub redis: RedisServer,
    pub programs: Vec<Running>,
    urls: Vec<String>,
    admins: Vec<String>,
    shop: Playing,
    dir: tempfile::TempDir,
}

impl Nodes {
    /// Starts `count` gateways; `more` goes into the room's table.
    pub async fn start(count: usize, more: &str) -> Self {
        let (redis, dir) = (RedisServer::start(), tempfile::tempdir().unwrap());
        let shop = Origin::bind().await.always("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nthe shop");
        let mut nodes = Self { redis, programs: Vec::new(), urls: Vec::new(), admins: Vec::new(), shop, dir };
        for number in 0..count {
            nodes.add(number, more);
        }
        for node in 0..count {
            nodes.until_ready(node).await;
        }
        nodes
    }

    fn add(&mut self, number: usize, more: &str) {
        let (public, admin) = (free_port(), free_port());
        let file = self.dir.path().join(format!("node-{number}.toml"));
        let config = format!(
            "listen = \"127.0.0.1:{public}\"\nadmin = \"127.0.0.1:{admin}\"\nredis = \"{}\"\n[[rooms]]\norigin = \
             \"{}\"\ncapacity = {CAPACITY}\nrate = {RATE}.0\nburst = {BURST}\n{more}\n",
            self.redis.url(),
            self.shop.uri,
        );
        std::fs::write(&file, config).unwrap();
        let keys = "5a".repeat(32);
        let environment = [("STANCHION_KEYS", keys.as_str()), ("RUST_LOG", "warn")];
        self.programs.push(Running::start(&["serve", "--config", file.to_str().unwrap()], &environment));
        self.urls.push(format!("http://127.0.0.1:{public}"));
        self.admins.push(format!("http://127.0.0.1:{admin}"));
    }

    /// Waits until a node says that it is ready.
    pub async fn until_ready(&self, node: usize) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        while !self.is_ready(node).await {
            assert!(tokio::time::Instant::now() < deadline, "node {node} never became ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_ready(&self, node: usize) -> bool {
        let address = self.admins[node].trim_start_matches("http://");
        if tokio::net::TcpStream::connect(address).await.is_err() {
            return false;
        }
        let ready = request(http::Method::GET, &format!("{}/readyz", self.admins[node]), &[], "").await;
        ready.status == StatusCode::OK
    }

    /// A visitor's address of the service, as a balancer would choose it.
    pub fn url(&self, visitor: usize) -> &str {
        &self.urls[visitor % self.urls.len()]
    }

    /// A visitor with an empty jar.
    pub fn browser(&self, visitor: usize) -> Browser {
        Browser::at(self.url(visitor))
    }
}
