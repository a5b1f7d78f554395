//! The gateway as a program: its certificate, its signals.

use std::{net::SocketAddr, path::Path, time::Duration};

use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;

use crate::support::{
    eventually::eventually,
    http,
    origin::Origin,
    program::Running,
    redis_server::free_port,
    tls::{connect, write},
    wire::{Wire, soon},
};

/// A gateway with one TLS listener before an origin in the test's hands.
struct Program {
    running: Running,
    public: SocketAddr,
    admin: String,
}

async fn start(dir: &Path, origin: &Origin, server: &str) -> (Program, CertificateDer<'static>) {
    let (files, certificate) = write(dir);
    let (public, admin) = (SocketAddr::from(([127, 0, 0, 1], free_port())), format!("127.0.0.1:{}", free_port()));
    let config = format!(
        "admin = \"{admin}\"\ndata = \"{}\"\n[[listeners]]\naddress = \"{public}\"\ncertificate = \"{}\"\nkey = \"{}\"\n\
         [server]\n{server}\n[[rooms]]\norigin = \"{}\"\n",
        dir.join("data").display(),
        files.certificate.display(),
        files.key.display(),
        origin.uri().to_string().trim_end_matches('/'),
    );
    let file = dir.join("stanchion.toml");
    std::fs::write(&file, config).unwrap();
    let running = Running::start(&["serve", "--config", file.to_str().unwrap()], &[]);
    eventually("the gateway", async || TcpStream::connect(public).await.ok()).await;
    (Program { running, public, admin }, certificate)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: shop.test\r\nAccept: text/html\r\nSec-Fetch-Mode: navigate\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn cookies_are_secure_and_a_hang_up_brings_the_new_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let origin = Origin::bind().await;
    let (program, old) = start(dir.path(), &origin, "").await;
    let mut client = Wire::over(connect(program.public, &old).await.unwrap());
    client.send(GET).await;
    let mut inside = origin.accept().await;
    inside.head().await;
    inside.send(OK).await;
    let cookies = client.head().await.all("set-cookie");
    assert!(!cookies.is_empty() && cookies.iter().all(|cookie| cookie.contains("; Secure")), "{cookies:?}");

    let (_, new) = write(dir.path());
    program.running.signal("-HUP");
    eventually("the new certificate", async || connect(program.public, &new).await.ok()).await;
}

#[tokio::test]
async fn a_stop_is_announced_and_loses_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let origin = Origin::bind().await;
    let (program, certificate) = start(dir.path(), &origin, "drain_delay = \"2s\"").await;
    let ready =
        async || http::try_request(::http::Method::GET, &format!("http://{}/readyz", program.admin), &[], "").await;
    let status = async |wanted: u16| ready().await.ok().filter(|answer| answer.status.as_u16() == wanted);
    eventually("readiness", async || status(200).await).await;
    let mut client = Wire::over(connect(program.public, &certificate).await.unwrap());
    client.send(GET).await;
    let mut inside = origin.accept().await;
    inside.head().await;

    program.running.signal("-TERM");
    eventually("the word that it stops", async || status(503).await).await;
    assert!(connect(program.public, &certificate).await.is_ok(), "whoever still comes is served");
    soon("the listener to close", async {
        while TcpStream::connect(program.public).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(status(503).await.unwrap().text(), "stopping\n", "one can still ask");
    inside.send(OK).await;
    let head = client.head().await;
    assert_eq!((head.status(), head.one("connection").unwrap().as_str()), (200, "close"));
    assert_eq!(client.rest().await.0, b"ok");
    eventually("the end", async || ready().await.err()).await;
}
