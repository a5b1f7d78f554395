//! Certificates made for a test, and clients that trust them.

use std::{net::SocketAddr, path::Path, sync::Arc};

use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, pki_types::CertificateDer};
use stanchion::tls::CertificateFiles;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::wire::soon;

pub const NAME: &str = "shop.test";

/// Writes a new certificate for [`NAME`] and its key.
pub fn write(dir: &Path) -> (CertificateFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let files = CertificateFiles { certificate: dir.join("cert.pem"), key: dir.join("key.pem") };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    (files, made.cert.der().clone())
}

/// A client that trusts only `certificate`, and offers these protocols.
pub fn client(
    certificate: &CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&[u8]],
) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

pub async fn handshake(client: &TlsConnector, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
    soon("a handshake", client.connect(NAME.try_into().unwrap(), stream)).await
}

/// A connection with any version, for HTTP/1.1.
pub async fn connect(addr: SocketAddr, certificate: &CertificateDer<'static>) -> std::io::Result<TlsStream<TcpStream>> {
    let client = client(certificate, rustls::ALL_VERSIONS, &[b"http/1.1"]);
    handshake(&client, TcpStream::connect(addr).await.unwrap()).await
}
