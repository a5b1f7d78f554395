//! Where a room's admitted traffic goes, and how much of it at once.

use http::{Uri, uri::PathAndQuery};

use super::{file::RoomTable, problems::Problems, room::check_prefix};

/// The origins of one room: one shop, whichever of them answers.
#[derive(Debug, Clone)]
pub struct Origins {
    /// Their addresses, at least one: scheme `http`, host and port; no path.
    pub addresses: Vec<Uri>,
    /// Most requests under way at once that only read (safe methods, RFC 9110 §9.2.1), over all origins, counted to the end
    /// of the answer's body.
    pub reads_in_flight: usize,
    /// The same of all other requests, which therefore never wait behind those that read.
    pub writes_in_flight: usize,
    /// Path prefixes that the shop can do without: refused first when it has much to do.
    pub optional: Vec<String>,
    /// What is asked for every two seconds to see whether an origin is well; `None` judges by visitors' requests alone.
    pub health_path: Option<PathAndQuery>,
}

/// Most requests that may be allowed at once: more is surely a typing error.
const MOST_IN_FLIGHT: usize = 100_000;

impl Origins {
    /// One origin, everything else by default.
    pub fn at(address: Uri) -> Self {
        Self {
            addresses: vec![address],
            reads_in_flight: 256,
            writes_in_flight: 128,
            optional: Vec::new(),
            health_path: None,
        }
    }

    /// Checks what the room's table says. What is wrong is noted in `problems`.
    pub(super) fn check(table: &RoomTable, field: &impl Fn(&str) -> String, problems: &mut Problems) -> Option<Self> {
        problems.check(table.origin.is_none() || table.origins.is_empty(), || {
            field("both origin and origins are given: put every address into origins")
        });
        let written: Vec<&String> = table.origin.iter().chain(&table.origins).collect();
        if written.is_empty() {
            problems.add(field("origin is missing: where is the shop? Such as origin = \"http://127.0.0.1:3000\", or --origin http://127.0.0.1:3000"));
        }
        let mut addresses: Vec<Uri> = Vec::new();
        for address in &written {
            if let Some(address) = problems.take(&field("origin"), parse_origin(address)) {
                problems.check(!addresses.contains(&address), || {
                    field(&format!("origin {address} is there twice: remove one"))
                });
                addresses.push(address);
            }
        }
        for path in &table.optional {
            check_prefix(path, &field("optional"), problems);
        }
        let defaults = Self::at(addresses.first()?.clone());
        let [reads_in_flight, writes_in_flight] = [
            ("reads_in_flight", table.reads_in_flight, defaults.reads_in_flight),
            ("writes_in_flight", table.writes_in_flight, defaults.writes_in_flight),
        ]
        .map(|(name, wanted, default)| {
            let wanted = wanted.unwrap_or(default);
            problems.check((1..=MOST_IN_FLIGHT).contains(&wanted), || {
                field(&format!("{name} {wanted}: use 1 to {MOST_IN_FLIGHT}"))
            });
            wanted
        });
        let health_path = table.health_path.as_ref().and_then(|path| {
            let parsed = path.parse::<PathAndQuery>().ok().filter(|_| path.starts_with('/'));
            problems.check(parsed.is_some(), || field(&format!("health_path {path:?}: write a path such as /healthz")));
            parsed
        });
        Some(Self { addresses, reads_in_flight, writes_in_flight, optional: table.optional.clone(), health_path })
    }
}

/// An address such as `http://127.0.0.1:3000`.
///
/// # Errors
/// What it should look like instead.
pub fn parse_origin(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| format!("{text:?} is not an address: {error}"))?;
    let plain = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/") && uri.query().is_none();
    let is_sound = |authority: &http::uri::Authority| {
        // A port that is no number from 0 to 65535 would be taken for none.
        let is_bare = authority.as_str().len() == authority.host().len();
        !authority.as_str().contains('@') && (is_bare || authority.port_u16().is_some())
    };
    if plain && uri.authority().is_some_and(is_sound) {
        Ok(uri)
    } else {
        Err(format!("{text:?}: use http://HOST:PORT, without a path (TLS to the shop is not spoken yet)"))
    }
}
