//! Version 2: bytes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Told;

const VERSION: u8 = 0x20;
const LOCAL: u8 = 0x00;
const PROXY: u8 = 0x01;
const INET: u8 = 0x10;
const INET6: u8 = 0x20;
const UNSPECIFIED: u8 = 0x00;
const UNIX: u8 = 0x30;
/// An extension that tells of TLS between client and balancer (§2.2.5), and its flag that there was.
const SSL: u8 = 0x20;
const CLIENT_SSL: u8 = 0x01;

/// Reads what follows the signature: version and command, family and transport, then addresses and extensions.
pub(super) fn parse(version_and_command: u8, family: u8, body: &[u8]) -> Option<Told> {
    if version_and_command & 0xf0 != VERSION {
        return None;
    }
    match version_and_command & 0x0f {
        LOCAL => return Some(Told::Itself),
        PROXY => {}
        _ => return None,
    }
    match (family & 0xf0, family & 0x0f) {
        // A receiver may use the addresses of any transport; ours came by a stream.
        (INET, 1) => {
            let (addresses, extensions) = body.split_at_checked(12)?;
            let (ip, port) = (first::<4>(addresses)?, first::<2>(addresses.get(8..)?)?);
            let address = SocketAddr::from((Ipv4Addr::from(ip), u16::from_be_bytes(port)));
            Some(Told::Client { address, tls: spoke_tls(extensions) })
        }
        (INET6, 1) => {
            let (addresses, extensions) = body.split_at_checked(36)?;
            let (ip, port) = (first::<16>(addresses)?, first::<2>(addresses.get(32..)?)?);
            let address = SocketAddr::from((Ipv6Addr::from(ip), u16::from_be_bytes(port)));
            Some(Told::Client { address, tls: spoke_tls(extensions) })
        }
        (UNSPECIFIED, 0) | (UNIX, 1) => Some(Told::Itself),
        _ => None,
    }
}

fn first<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}

/// Whether one of the extensions says that the client spoke TLS. All others are skipped, damaged ones included: addresses
/// are what counts.
fn spoke_tls(mut extensions: &[u8]) -> bool {
    while let Some((&[kind, high, low], rest)) = extensions.split_first_chunk() {
        let Some((value, rest)) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low]))) else { break };
        if kind == SSL {
            return value.first().is_some_and(|flags| flags & CLIENT_SSL != 0);
        }
        extensions = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: [u8; 12] = [192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 0x04, 0x01, 0xbb];

    fn client(address: &str, tls: bool) -> Told {
        Told::Client { address: address.parse().unwrap(), tls }
    }

    #[test]
    fn the_client_is_the_first_address() {
        assert_eq!(parse(0x21, 0x11, &V4), Some(client("192.0.2.1:56324", false)));
        let mut v6 = [0; 36];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        v6[15] = 1;
        v6[33] = 80;
        assert_eq!(parse(0x21, 0x21, &v6), Some(client("[2001:db8::1]:80", false)));
    }

    #[test]
    fn whoever_speaks_for_itself_is_taken_as_itself() {
        for (command, family) in [(0x20, 0x00), (0x20, 0x11), (0x21, 0x00), (0x21, 0x31)] {
            assert_eq!(parse(command, family, &[]), Some(Told::Itself), "{command:x} {family:x}");
        }
    }

    #[test]
    fn extensions_are_skipped_but_for_the_one_that_tells_of_tls() {
        let with = |extensions: &[u8]| parse(0x21, 0x11, &[&V4[..], extensions].concat());
        assert_eq!(with(&[0x03, 0, 4, 1, 2, 3, 4]), Some(client("192.0.2.1:56324", false)));
        assert_eq!(with(&[0x04, 0, 1, 0, 0x20, 0, 5, 1, 0, 0, 0, 0]), Some(client("192.0.2.1:56324", true)));
        assert_eq!(with(&[0x20, 0, 5, 0, 0, 0, 0, 0]), Some(client("192.0.2.1:56324", false)));
        assert_eq!(with(&[0x20, 0xff, 0xff, 1]), Some(client("192.0.2.1:56324", false)));
        assert_eq!(with(&[0x20, 0]), Some(client("192.0.2.1:56324", false)));
    }

    #[test]
    fn anything_else_is_no_header() {
        for (command, family) in [(0x11, 0x11), (0x22, 0x11), (0x31, 0x11), (0x21, 0x12), (0x21, 0x41), (0x21, 0x10)] {
            assert_eq!(parse(command, family, &V4), None, "{command:x} {family:x}");
        }
        assert_eq!(parse(0x21, 0x11, &V4[..11]), None);
        assert_eq!(parse(0x21, 0x21, &V4), None);
    }
}
