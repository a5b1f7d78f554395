//! Where the Redis is: one server, a master that Sentinels name, or a cluster.

use std::fmt;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _};

use super::StoreError;

const SENTINEL: &str = "redis+sentinel://";
const CLUSTER: &str = "redis+cluster://";
const SENTINEL_PORT: u16 = 26379;
const SERVER_PORT: u16 = 6379;

/// A Redis address, parsed. Shows no user and no password.
#[derive(Clone)]
pub enum RedisAddress {
    /// `redis://[user:password@]host[:port][/database]`, or `unix:///path`.
    Single(ConnectionInfo),
    /// `redis+sentinel://[user:password@]host[:port],…/master[/database][?sentinel_auth=user:password]`.
    Sentinel {
        /// Every Sentinel, with its own credentials.
        sentinels: Vec<ConnectionInfo>,
        /// The name under which they know the master.
        master: String,
        /// Credentials and database for whichever server is the master; the address in it means nothing.
        server: ConnectionInfo,
    },
    /// `redis+cluster://[user:password@]host[:port],…`: some of its nodes; the others are found by them.
    Cluster(Vec<ConnectionInfo>),
}

impl RedisAddress {
    /// The syntax, for messages.
    pub const SYNTAX: &str = "redis://[user:password@]host[:port][/database], \
        redis+sentinel://[user:password@]host,host/master[/database][?sentinel_auth=user:password] or \
        redis+cluster://[user:password@]host,host";

    /// Reads a URL. Nothing of it that could be a secret is repeated in the error.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let parsed = match (url.strip_prefix(SENTINEL), url.strip_prefix(CLUSTER)) {
            (Some(rest), _) => sentinel(rest),
            (_, Some(rest)) => cluster(rest),
            _ if url.starts_with("rediss://") || url.starts_with("valkeys://") => {
                Err("TLS is not built in; lead the connection through a TLS tunnel such as stunnel".to_owned())
            }
            _ => one(url).map(Self::Single),
        };
        parsed.map_err(|problem| {
            StoreError::Unusable(format!(
                "the Redis address is not understood ({problem}); it looks like {}",
                Self::SYNTAX
            ))
        })
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(server) => write!(f, "{}", server.addr()),
            Self::Sentinel { sentinels, master, .. } => write!(f, "{master} of the Sentinels {}", list(sentinels)),
            Self::Cluster(nodes) => write!(f, "the cluster {}", list(nodes)),
        }
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisAddress({self})")
    }
}

/// The same login and database at another host.
pub fn at(server: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    server.clone().set_addr(ConnectionAddr::Tcp(host.to_owned(), port))
}

fn list(servers: &[ConnectionInfo]) -> String {
    servers.iter().map(|server| server.addr().to_string()).collect::<Vec<_>>().join(",")
}

fn sentinel(rest: &str) -> Result<RedisAddress, String> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (master, database) = path.split_once('/').unwrap_or((path, ""));
    if master.is_empty() {
        return Err("the master's name is missing after the Sentinels".to_owned());
    }
    let (login, hosts) = login_and_hosts(authority);
    let sentinel_login = match query.split_once('=') {
        Some(("sentinel_auth", login)) => format!("{login}@"),
        _ if query.is_empty() => String::new(),
        _ => return Err("sentinel_auth is the only parameter".to_owned()),
    };
    let sentinels = hosts.map(|host| one(&format!("redis://{sentinel_login}{}", with_port(host, SENTINEL_PORT))));
    let sentinels = sentinels.collect::<Result<_, _>>()?;
    let server = one(&format!("redis://{login}master/{database}"))?;
    Ok(RedisAddress::Sentinel { sentinels, master: master.to_owned(), server })
}

fn cluster(rest: &str) -> Result<RedisAddress, String> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !path.is_empty() {
        return Err("a cluster has no databases, so nothing follows its hosts".to_owned());
    }
    let (login, hosts) = login_and_hosts(authority);
    let nodes = hosts.map(|host| one(&format!("redis://{login}{}", with_port(host, SERVER_PORT))));
    nodes.collect::<Result<_, _>>().map(RedisAddress::Cluster)
}

/// `user:password@` or nothing, and the hosts.
fn login_and_hosts(authority: &str) -> (&str, impl Iterator<Item = &str>) {
    let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    (login, hosts.split(','))
}

fn with_port(host: &str, default: u16) -> String {
    // An IPv6 address has colons of its own, in brackets.
    let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
    if has_port { host.to_owned() } else { format!("{host}:{default}") }
}

fn one(url: &str) -> Result<ConnectionInfo, String> {
    let info = url.into_connection_info().map_err(|error| error.to_string())?;
    match info.addr() {
        ConnectionAddr::Tcp(host, _) if host.is_empty() => Err("a host is missing".to_owned()),
        _ => Ok(info),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        RedisAddress::parse(url).unwrap().to_string()
    }

    #[test]
    fn each_topology_is_told_by_its_scheme() {
        assert_eq!(shown("redis://u:p@one"), "one:6379");
        assert_eq!(shown("unix:///run/redis.sock"), "/run/redis.sock");
        assert_eq!(
            shown("redis+sentinel://u:p@one,two:7,[::1]/main/3"),
            "main of the Sentinels one:26379,two:7,::1:26379"
        );
        assert_eq!(shown("redis+cluster://one:7000,[::1]:7001,three"), "the cluster one:7000,::1:7001,three:6379");
    }

    #[test]
    fn sentinels_and_servers_have_logins_of_their_own() {
        let address = RedisAddress::parse("redis+sentinel://shop:a%2Fb@one/main/3?sentinel_auth=watch:c%40d").unwrap();
        let RedisAddress::Sentinel { sentinels, master, server } = address else { panic!("{address}") };
        let login = |info: &ConnectionInfo| {
            let settings = info.redis_settings();
            (settings.username().unwrap().to_owned(), settings.password().unwrap().to_owned(), settings.db())
        };
        assert_eq!(login(&sentinels[0]), ("watch".to_owned(), "c@d".to_owned(), 0));
        assert_eq!((master.as_str(), login(&server)), ("main", ("shop".to_owned(), "a/b".to_owned(), 3)));
        let moved = at(&server, "elsewhere", 6380);
        assert_eq!((moved.addr().to_string().as_str(), login(&moved).2), ("elsewhere:6380", 3));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (url, said) in [
            ("redis+sentinel://u:s3cret@one,two", "master's name"),
            ("redis+sentinel://u:s3cret@one/main?password=s3cret", "sentinel_auth"),
            ("redis+sentinel://u:s3cret@one:port/main", "not understood"),
            ("redis+sentinel://u:s3cret@/main", "not understood"),
            ("redis+cluster://u:s3cret@one,,two", "not understood"),
            ("redis+cluster://u:s3cret@one/1", "no databases"),
            ("rediss://u:s3cret@one", "TLS"),
            ("http://u:s3cret@one", "not understood"),
        ] {
            let error = RedisAddress::parse(url).unwrap_err();
            assert!(matches!(error, StoreError::Unusable(_)), "{url}: {error}");
            let text = error.to_string();
            assert!(text.contains(said) && text.contains("redis+cluster://") && !text.contains("s3cret"), "{text}");
        }
    }
}
