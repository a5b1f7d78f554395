//! The PROXY protocol, versions 1 and 2 (haproxy.org/download/3.0/doc/proxy-protocol.txt): a header in front of everything
//! else, in which a load balancer says whose connection it passes on.

mod version1;
mod version2;

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    net::TcpStream,
};

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// The balancer speaks for itself, as in a health check, or does not know for whom.
    Itself,
    /// It speaks for a client.
    Client {
        address: SocketAddr,
        /// Whether the client spoke TLS to the balancer.
        tls: bool,
    },
}

/// The shortest header of either version is longer.
const BEGINNING: usize = 12;
const SIGNATURE: &[u8; BEGINNING] = b"\r\n\r\n\0\r\nQUIT\n";
/// A header of version 1 is never longer, its CRLF included (§2.1).
const LONGEST_LINE: usize = 107;
/// Addresses and extensions of version 2. The longest known in the wild carry a client's certificate name: far below.
const MOST_BYTES: usize = 4_096;

/// Reads the header and not one byte more.
///
/// # Errors
/// When the connection ends, or does not begin with a header.
pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Told> {
    let mut beginning = [0; BEGINNING];
    stream.read_exact(&mut beginning).await?;
    if &beginning == SIGNATURE {
        let header = rest_of_version2(stream).await?;
        version2::parse(header.0, header.1, &header.2)
    } else {
        let line = rest_of_line(stream, &beginning).await?;
        version1::parse(&line)
    }
    .ok_or_else(malformed)
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the connection does not begin with a PROXY header")
}

async fn rest_of_version2(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, u8, Vec<u8>)> {
    let mut fixed = [0; 4];
    stream.read_exact(&mut fixed).await?;
    let [version_and_command, family, high, low] = fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > MOST_BYTES {
        return Err(malformed());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((version_and_command, family, body))
}

/// Looks before it reads, so that what follows the line stays where it is.
async fn rest_of_line(stream: &mut TcpStream, beginning: &[u8]) -> io::Result<Vec<u8>> {
    let mut line = beginning.to_vec();
    if !line.starts_with(b"PROXY ") {
        return Err(malformed());
    }
    let mut ahead = [0; LONGEST_LINE];
    while line.last() != Some(&b'\n') {
        let room = LONGEST_LINE - line.len();
        let seen = stream.peek(ahead.get_mut(..room).unwrap_or_default()).await?;
        if seen == 0 {
            return Err(malformed());
        }
        let wanted = ahead[..seen].iter().position(|byte| *byte == b'\n').map_or(seen, |at| at + 1);
        let known = line.len();
        line.resize(known + wanted, 0);
        stream.read_exact(&mut line[known..]).await?;
    }
    Ok(line)
}
