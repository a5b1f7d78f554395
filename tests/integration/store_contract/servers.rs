//! Connecting: which servers will do, and what is said when one will not.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use stanchion::store::{Engine as _, StoreError, redis_engine::RedisEngine};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::script;
use crate::support::redis_server::{RedisServer, free_port};

#[tokio::test]
async fn nobody_there_is_said_with_the_address_and_the_cure() {
    let address = format!("127.0.0.1:{}", free_port());
    let asked = Instant::now();
    let error = RedisEngine::connect(&format!("redis://user:s3cret@{address}/0")).await.unwrap_err();
    assert!(asked.elapsed() < Duration::from_secs(3), "took {:?}", asked.elapsed());
    let text = error.to_string();
    assert!(text.contains(&address) && text.contains("start redis-server") && text.contains("--redis"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Instant::now();
    let error = RedisEngine::connect(&format!("redis://{address}")).await.unwrap_err();
    assert!(asked.elapsed() < Duration::from_secs(3), "took {:?}", asked.elapsed());
    assert!(error.is_transient() && error.to_string().contains(&address), "{error}");
}

#[tokio::test]
async fn a_bad_address_is_explained() {
    for url in ["", "localhost", "http://127.0.0.1", "redis://user:s3cret@host:port"] {
        let error = RedisEngine::connect(url).await.unwrap_err();
        assert!(matches!(error, StoreError::Unusable(_)), "{url:?}: {error}");
        assert!(error.to_string().contains("redis://"), "{url:?}: {error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn a_password_opens_the_server_and_is_never_shown() {
    let server = RedisServer::start();
    assert!(server.command("ACL SETUSER shop on >s3cret ~* +@all").starts_with("+OK"));
    let address = server.url().replace("redis://", "");
    let engine = RedisEngine::connect(&format!("redis://shop:s3cret@{address}")).await.unwrap();
    engine.run(script("return 1"), &[], vec![]).await.unwrap();
    assert!(!format!("{engine:?}").contains("s3cret"));

    let error = RedisEngine::connect(&format!("redis://shop:wr0ng@{address}")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error}");
    assert!(error.to_string().contains(&address) && !error.to_string().contains("wr0ng"), "{error}");
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let address = pretend_server("redis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\n").await;
    let error = RedisEngine::connect(&format!("redis://{address}")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error}");
    assert!(error.to_string().contains("6.2.14") && error.to_string().contains("Redis 7"), "{error}");
}

/// C05.
#[tokio::test]
async fn a_server_that_evicts_keys_is_refused_with_the_cure() {
    for policy in ["allkeys-lru", "allkeys-lfu", "volatile-ttl"] {
        let server = RedisServer::start_with(&["--maxmemory-policy", policy]);
        let error = RedisEngine::connect(&server.url()).await.unwrap_err();
        assert!(matches!(error, StoreError::Unusable(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains(policy) && text.contains("CONFIG SET maxmemory-policy noeviction"), "{text}");
        // The cure is one.
        assert!(server.command("CONFIG SET maxmemory-policy noeviction").starts_with("+OK"));
        RedisEngine::connect(&server.url()).await.unwrap();
    }
}

/// Managed servers forbid more than ours; who may not look is told so and let pass.
#[tokio::test]
async fn where_info_is_forbidden_nobody_looks_and_that_is_said() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    assert!(server.command("ACL SETUSER shop on >s3cret ~* +@all -info").starts_with("+OK"));
    let url = server.url().replace("redis://", "redis://shop:s3cret@");
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer({
        let log = log.clone();
        move || log.clone()
    });
    let guard = tracing::subscriber::set_default(subscriber.finish());
    let engine = RedisEngine::connect(&url).await.unwrap();
    drop(guard);
    engine.run(script("return 1"), &[], vec![]).await.unwrap();
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("WARN") && text.contains("INFO") && text.contains("noeviction"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

/// Answers OK to everything and `info` to INFO.
async fn pretend_server(info: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut received = vec![0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut received).await {
                let text = String::from_utf8_lossy(&received[..length]).into_owned();
                for request in text.split('*').skip(1) {
                    let reply = if request.contains("\r\nINFO\r\n") {
                        format!("${}\r\n{info}\r\n", info.len())
                    } else {
                        "+OK\r\n".to_owned()
                    };
                    stream.write_all(reply.as_bytes()).await.unwrap();
                }
            }
        }
    });
    address
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
