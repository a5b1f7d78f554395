//! What is said on a connection before HTTP: a PROXY header, a TLS handshake; each under a deadline.

use std::{io, time::Duration};

use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{error::Elapsed, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    GatewayError, Peer, Trust,
    doors::Welcome,
    proxy_protocol::{self, Told},
    respond,
    socket::Socket,
};

/// First byte of every TLS handshake (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;

/// Why nothing more is to be said.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unwelcome {
    #[error("the peer may not speak the PROXY protocol here: it is none of trusted_proxies")]
    Stranger,
    #[error("the PROXY header or the TLS handshake took too long")]
    TooSlow(#[from] Elapsed),
    #[error("plain HTTP was spoken where TLS is expected")]
    PlainHttp,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Whose connection this is.
///
/// # Errors
/// When the header is missing, malformed or late, or the peer may not send one.
pub(super) async fn proxied_for(
    stream: &mut TcpStream,
    peer: Peer,
    trust: &Trust,
    deadline: Duration,
) -> Result<Peer, Unwelcome> {
    if !trust.is_trusted(peer.addr.ip()) {
        return Err(Unwelcome::Stranger);
    }
    Ok(match timeout(deadline, proxy_protocol::read(stream)).await?? {
        // The balancer's own, or that of somebody it does not name.
        Told::Itself => Peer { vouches: false, ..peer },
        Told::Client { address, tls } => Peer::new(address, tls),
    })
}

/// The socket to speak HTTP on.
///
/// # Errors
/// When the handshake fails or takes too long. Whoever speaks plain HTTP is told so.
pub(super) async fn secured(mut stream: TcpStream, welcome: &Welcome, deadline: Duration) -> Result<Socket, Unwelcome> {
    let Some(tls) = &welcome.tls else { return Ok(Socket::Plain(stream)) };
    let handshake = async {
        let mut first = [0];
        if stream.peek(&mut first).await? > 0 && first.iter().any(u8::is_ascii_uppercase) && first != [HANDSHAKE] {
            let refused = GatewayError::BadRequest("this address speaks HTTPS only: use https://");
            stream.write_all(&respond::raw(refused)).await?;
            stream.shutdown().await?;
            // Closing before the request is read would reset the connection and destroy the answer.
            let mut scrap = [0; 4_096];
            while tokio::io::AsyncReadExt::read(&mut stream, &mut scrap).await? > 0 {}
            return Err(Unwelcome::PlainHttp);
        }
        Ok(Socket::Tls(Box::new(TlsAcceptor::from(tls.clone()).accept(stream).await?)))
    };
    timeout(deadline, handshake).await?
}
