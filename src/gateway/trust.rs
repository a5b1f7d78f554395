//! Who sends a request, when it came through proxies: their word counts only where the operator named them.

mod forwarded;

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue, header::FORWARDED};
use ipnet::IpNet;

use super::{
    Peer,
    forward_headers::{X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO},
    head,
};
use crate::config::server::ForwardedHeader;

/// The proxies whose word is taken, and where they put it. The default trusts nobody.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    networks: Vec<IpNet>,
    header: ForwardedHeader,
}

/// Who a request is from.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    /// The visitor: the last address on the way to us that is no trusted proxy.
    pub(super) visitor: Peer,
    /// The other end of the connection, when it spoke for the visitor.
    pub(super) proxy: Option<IpAddr>,
    /// What the proxies before it had written, to be continued.
    pub(super) chain: Option<(HeaderName, HeaderValue)>,
    /// The host that the visitor asked the first trusted proxy for.
    pub(super) host: Option<HeaderValue>,
}

/// One hop, as the proxy behind it saw it.
#[derive(Debug, Default, PartialEq)]
struct Hop {
    address: Option<IpAddr>,
    tls: Option<bool>,
    host: Option<String>,
}

impl Trust {
    /// Takes the word of peers in these networks, and finds it in this header.
    pub fn new(networks: Vec<IpNet>, header: ForwardedHeader) -> Self {
        Self { networks, header }
    }

    /// Whether this is one of the proxies.
    pub fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Who sent a request that came from `peer`.
    pub(super) fn sender(&self, headers: &HeaderMap, peer: Peer) -> Sender {
        if !peer.vouches || !self.is_trusted(peer.addr.ip()) {
            return Sender { visitor: peer, proxy: None, chain: None, host: None };
        }
        let hops = match self.header {
            ForwardedHeader::XForwardedFor => x_forwarded(headers),
            ForwardedHeader::Forwarded => forwarded::hops(headers),
        };
        let hop = self.visitor(hops);
        let name = match self.header {
            ForwardedHeader::XForwardedFor => X_FORWARDED_FOR.clone(),
            ForwardedHeader::Forwarded => FORWARDED,
        };
        let chain = joined(headers, &name).map(|value| (name, value));
        let host = hop.host.and_then(|host| HeaderValue::try_from(host).ok());
        let address = hop.address.map_or(peer.addr, |address| SocketAddr::new(address, 0));
        Sender {
            visitor: Peer::new(address, hop.tls.unwrap_or(peer.tls)),
            proxy: hop.address.map(|_| peer.addr.ip()),
            chain: chain.filter(|_| hop.address.is_some()),
            host: host.filter(|host| head::authority(host.as_bytes()).is_ok()),
        }
    }

    /// From the last hop backwards: the first that is no trusted proxy; the farthest, if all are. What is no address ends the
    /// walk, because nobody can say who wrote what stands before it.
    fn visitor(&self, hops: Vec<Hop>) -> Hop {
        let mut visitor = Hop::default();
        for hop in hops.into_iter().rev() {
            let Some(address) = hop.address else {
                // It may still be honest about how the visitor came, and for what.
                return if visitor.address.is_none() { Hop { address: None, ..hop } } else { visitor };
            };
            visitor = hop;
            if !self.is_trusted(address) {
                break;
            }
        }
        visitor
    }
}

/// `X-Forwarded-For`, with the scheme and host that belong to each hop.
fn x_forwarded(headers: &HeaderMap) -> Vec<Hop> {
    let addresses: Vec<&str> = members(headers, &X_FORWARDED_FOR).collect();
    let protos: Vec<&str> = members(headers, &X_FORWARDED_PROTO).collect();
    let hosts: Vec<&str> = members(headers, &X_FORWARDED_HOST).collect();
    // Counted from the end, where the proxies we know append; a list that is shorter was set once, at its beginning.
    let beside = |list: &[&str], from_end: usize| {
        list.len().checked_sub(1).and_then(|last| list.get(last.saturating_sub(from_end)).map(|&word| word.to_owned()))
    };
    let hops = addresses.len().max(1);
    (0..hops)
        .map(|index| {
            let from_end = hops - 1 - index;
            Hop {
                address: addresses.get(index).and_then(|text| address(text)),
                tls: beside(&protos, from_end).and_then(|proto| is_tls(&proto)),
                host: beside(&hosts, from_end),
            }
        })
        .collect()
}

/// The comma-separated members of all lines of a field, as far as they are text.
fn members<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("unreadable"));
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    let lines: Vec<&[u8]> =
        headers.get_all(name).iter().map(HeaderValue::as_bytes).filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| HeaderValue::from_bytes(&lines.join(&b", "[..])).ok()).flatten()
}

fn is_tls(proto: &str) -> Option<bool> {
    match proto {
        _ if proto.eq_ignore_ascii_case("https") || proto.eq_ignore_ascii_case("wss") => Some(true),
        _ if proto.eq_ignore_ascii_case("http") || proto.eq_ignore_ascii_case("ws") => Some(false),
        _ => None,
    }
}

/// An address with or without port, an IPv6 one with or without brackets.
fn address(text: &str) -> Option<IpAddr> {
    let plain = text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    plain.or_else(with_port).or_else(in_brackets).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests;
