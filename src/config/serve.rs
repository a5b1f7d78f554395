//! The gateway's settings: the file, then what the command line says on top.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use http::Uri;

use super::{
    ConfigError, ListenerConfig, RoomConfig, ServerConfig,
    file::{ConfigFile, RoomTable},
    problems::Problems,
    server,
};
use crate::store::redis_address::RedisAddress;

/// Everything `stanchion serve` needs, checked.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// Public listeners; at least one.
    pub listeners: Vec<ListenerConfig>,
    /// Their bounds.
    pub server: ServerConfig,
    /// Private listener.
    pub admin: SocketAddr,
    /// Where signing keys are kept, and what is published of a lottery's draw.
    pub data: PathBuf,
    /// The embedded engine when `None`.
    pub redis: Option<String>,
    /// At least one.
    pub rooms: Vec<RoomConfig>,
}

/// What the command line or the environment sets; each wins over the file. Those of a room apply to every room.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "each is the flag of its name")]
pub struct Overrides {
    /// Instead of the plain listeners of the file.
    pub listen: Option<Vec<SocketAddr>>,
    pub admin: Option<SocketAddr>,
    pub data: Option<PathBuf>,
    pub redis: Option<String>,
    pub origin: Option<String>,
    pub capacity: Option<u32>,
    pub rate: Option<f64>,
}

impl ServeConfig {
    /// Reads `path` if given, lays `overrides` on top and checks everything.
    ///
    /// # Errors
    /// Every problem found, each with its cure. A file that was named must exist.
    pub fn load(path: Option<&Path>, overrides: Overrides) -> Result<Self, ConfigError> {
        let Some(path) = path else { return Self::build(ConfigFile::default(), overrides) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::only(format!("cannot read {}: {error}", path.display())))?;
        ConfigFile::parse(&text)
            .and_then(|file| Self::build(file, overrides))
            .map_err(|error| ConfigError::only(format!("{}: {error}", path.display())))
    }

    /// What can be used but is likely not meant.
    pub fn warnings(&self) -> Vec<String> {
        self.rooms.iter().flat_map(RoomConfig::warnings).collect()
    }

    fn build(file: ConfigFile, overrides: Overrides) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let tables = if file.rooms.is_empty() { vec![RoomTable::default()] } else { file.rooms };
        let rooms: Vec<RoomConfig> = tables
            .into_iter()
            .map(|table| RoomTable {
                // A word of the command line replaces all that the file says.
                origins: if overrides.origin.is_some() { Vec::new() } else { table.origins },
                origin: overrides.origin.clone().or(table.origin),
                capacity: overrides.capacity.or(table.capacity),
                rate: overrides.rate.or(table.rate),
                ..table
            })
            .filter_map(|table| RoomConfig::check(table, &mut problems))
            .collect();
        for (index, room) in rooms.iter().enumerate() {
            problems.check(rooms[..index].iter().all(|other| other.name != room.name), || {
                format!("room {}: there are two rooms of this name; rename one", room.name)
            });
            for other in &rooms[..index] {
                if let Some(shared) = room.conflict(other) {
                    problems.add(format!(
                        "rooms {} and {} both guard {shared}: give each hosts or paths of its own",
                        other.name, room.name
                    ));
                }
            }
        }
        let config = Self {
            listeners: server::listeners(overrides.listen.or(file.listen), file.listeners, &mut problems),
            server: ServerConfig::check(&file.server, &mut problems),
            admin: overrides.admin.or(file.admin).unwrap_or((Ipv4Addr::LOCALHOST, 9090).into()),
            data: overrides.data.or(file.data).unwrap_or_else(default_data_dir),
            redis: overrides.redis.or(file.redis),
            rooms,
        };
        if let Some(url) = &config.redis {
            problems.take("redis", RedisAddress::parse(url));
        }
        config.check_addresses(&mut problems);
        problems.finish(Some(config))
    }
}

impl ServeConfig {
    /// The listeners beside each other and beside the rooms.
    fn check_addresses(&self, problems: &mut Problems) {
        for ListenerConfig { address, proxy_protocol, .. } in &self.listeners {
            problems.check(*address != self.admin || address.port() == 0, || {
                format!("listen and admin are both {address}: give the admin listener an address of its own")
            });
            problems.check(!proxy_protocol || !self.server.trusted_proxies.is_empty(), || {
                format!("listener {address}: proxy_protocol needs trusted_proxies in [server]: who may tell the visitors' addresses?")
            });
            for room in &self.rooms {
                let itself = |origin: &Uri| {
                    let origin = origin.authority().and_then(|origin| origin.as_str().parse::<SocketAddr>().ok());
                    origin == Some(*address)
                };
                problems.check(!room.origins.addresses.iter().any(itself), || {
                    format!("room {}: origin {address} is this gateway itself: where is the shop?", room.name)
                });
            }
        }
    }
}

/// Where a service keeps its state: what systemd gives it, else the XDG state directory.
fn default_data_dir() -> PathBuf {
    let from = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("STATE_DIRECTORY")
        .or_else(|| from("XDG_STATE_HOME").map(|dir| dir.join("stanchion")))
        .or_else(|| from("HOME").map(|dir| dir.join(".local/state/stanchion")))
        .unwrap_or_else(|| PathBuf::from("stanchion-data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(toml: &str) -> String {
        ConfigFile::parse(toml)
            .and_then(|file| ServeConfig::build(file, Overrides::default()))
            .map_or_else(|error| error.to_string(), |_| String::from("no problem"))
    }

    #[test]
    fn an_origin_is_enough() {
        let overrides = Overrides { origin: Some("http://127.0.0.1:3000".to_owned()), ..Overrides::default() };
        let config = ServeConfig::build(ConfigFile::default(), overrides).unwrap();
        assert_eq!(config.rooms.len(), 1);
        assert_eq!(config.rooms[0].name.as_str(), "main");
        assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:8080");
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let said = problems(
            r#"
            [[rooms]]
            name = "Main Hall"
            origin = "ftp://shop"
            capacity = 0
            rate = -1.0
            queued_status = 500
            opens_at = "soon"
            claim_window = "0s"
            max_parallel = 1
            "#,
        );
        for word in
            ["Main Hall", "ftp://shop", "capacity", "rate", "queued_status", "soon", "claim_window", "max_parallel"]
        {
            assert!(said.contains(word), "{word} is missing from: {said}");
        }
    }

    #[test]
    fn an_unknown_field_is_named_with_its_line() {
        let said = problems("[[rooms]]\norigin = \"http://127.0.0.1:1\"\ncapacty = 3\n");
        assert!(said.contains("capacty") && said.contains("line 3"), "{said}");
    }

    #[test]
    fn every_field_that_cannot_be_read_is_named_with_its_line_and_the_cure() {
        let said = problems(
            "admin_token = \"secret\"\norigin = \"http://127.0.0.1:1\"\n\n[[rooms]]\ncapacity = \"many\"\nrate = 5\n\
             grace = 90\nhosts = \"shop.test\"\nopens_at = true\n",
        );
        for words in [
            "STANCHION_ADMIN_TOKEN",
            "origin belongs to a room: write it below a line [[rooms]]",
            "line 5",
            "line 7",
            "line 8",
            "2030-05-01T10:00:00+02:00",
            "6 problems",
        ] {
            assert!(said.contains(words), "{words} is missing from: {said}");
        }
        assert!(!said.contains("secret\n"), "{said}");
    }

    #[test]
    fn a_time_needs_no_quotes_but_an_offset() {
        let room = |times: &str| format!("[[rooms]]\norigin = \"http://127.0.0.1:1\"\n{times}\n");
        assert_eq!(problems(&room("opens_at = 2030-05-01T10:00:00+02:00")), "no problem");
        assert_eq!(problems(&room("opens_at = \"2030-05-01T10:00:00+02:00\"")), "no problem");
        let said = problems(&room("opens_at = 2030-05-01T10:00:00"));
        assert!(said.contains("such as 2030-05-01T10:00:00+02:00"), "{said}");
    }

    #[test]
    fn a_rate_that_is_no_number_is_one_problem() {
        let said = problems("[[rooms]]\norigin = \"http://127.0.0.1:1\"\nrate = nan\n");
        assert!(said.contains("use 0.001 to 1000000") && !said.contains("problems"), "{said}");
    }

    #[test]
    fn what_is_likely_not_meant_is_a_warning() {
        let config = |line: &str| {
            let file = ConfigFile::parse(&format!("[[rooms]]\norigin = \"http://127.0.0.1:1\"\n{line}\n")).unwrap();
            ServeConfig::build(file, Overrides::default()).unwrap()
        };
        assert_eq!(config("").warnings(), Vec::<String>::new());
        assert!(config("claim_window = \"30s\"").warnings()[0].contains("below 75s"));
        let lottery = |opens_at: &str| {
            config(&format!("method = \"lottery\"\nprequeue_at = \"2030-01-01T00:00:00Z\"\nopens_at = \"{opens_at}\""))
                .warnings()
        };
        assert_eq!(lottery("2030-01-01T00:01:15Z"), Vec::<String>::new());
        assert!(lottery("2030-01-01T00:01:14Z")[0].contains("shorter than 75s"));
    }

    #[test]
    fn what_would_guard_nothing_is_refused() {
        for line in [
            r#"hosts = ["shop.test:8080"]"#,
            r#"hosts = ["*.shop.test"]"#,
            r#"hosts = ["http://shop.test"]"#,
            r#"hosts = [""]"#,
            r#"paths = ["/shop?x"]"#,
            r#"paths = ["/a b"]"#,
            r#"paths = ["/a/../shop"]"#,
            r#"paths = ["//shop"]"#,
            r#"name = "assets""#,
            r#"cookie_domain = "evil; Secure""#,
            r#"cookie_domain = """#,
            r#"queue_token_ttl = "0s""#,
            r#"settle = "500y""#,
            "rate = 20.0\nadaptive = { min_rate = 0 }",
            "rate = 20.0\nadaptive = { min_rate = 21 }",
            "rate = 20.0\nadaptive = { max_rate = 19 }",
            "adaptive = { max_rate = nan }",
            "adaptive = { max_error_ratio = 0.0 }",
            "adaptive = { max_error_ratio = 5 }",
            "adaptive = { target_p95_ms = 0 }",
            "adaptive = { target = 5 }",
            "[[rooms.bypass]]\npath_prefix = \"/\"",
            "[[rooms.bypass]]\npath_prefix = \"/a/../b\"",
        ] {
            let said = problems(&format!("[[rooms]]\norigin = \"http://127.0.0.1:1\"\n{line}\n"));
            assert_ne!(said, "no problem", "{line}");
        }
        for origin in ["http://127.0.0.1:99999", "http://127.0.0.1:", "http://127.0.0.1:8080"] {
            assert_ne!(problems(&format!("[[rooms]]\norigin = \"{origin}\"\n")), "no problem", "{origin}");
        }
        for line in [
            r#"hosts = ["shop.test", "127.0.0.1", "[::1]"]"#,
            r#"paths = ["/", "/shop/", "/caf%C3%A9"]"#,
            r#"cookie_domain = ".shop.test""#,
            "adaptive = {}",
            "rate = 0.5\nadaptive = {}",
            "adaptive = { target_p95_ms = 800, max_error_ratio = 0.05, min_rate = 1, max_rate = 50 }",
            "[[rooms.bypass]]\npath_prefix = \"/\"\nmethods = [\"POST\"]",
        ] {
            assert_eq!(problems(&format!("[[rooms]]\norigin = \"http://[::1]:1\"\n{line}\n")), "no problem");
        }
    }

    #[test]
    fn an_adaptive_room_says_all_that_is_wrong_and_bursts_by_its_highest_rate() {
        let said = problems(
            "[[rooms]]\norigin = \"http://127.0.0.1:1\"\nrate = 20.0\n\
             adaptive = { target_p95_ms = 99999, max_error_ratio = 2, min_rate = -1, max_rate = 1 }\n",
        );
        for word in ["target_p95_ms", "max_error_ratio", "min_rate", "max_rate"] {
            assert!(said.contains(word), "{word} is missing from: {said}");
        }
        let file = ConfigFile::parse(
            "[[rooms]]\norigin = \"http://127.0.0.1:1\"\nrate = 20.0\nadaptive = { max_rate = 50 }\n",
        );
        let config = ServeConfig::build(file.unwrap(), Overrides::default()).unwrap();
        assert_eq!(config.rooms[0].policy.burst, 13);
    }

    #[test]
    fn two_rooms_of_one_name_are_refused() {
        let room = "[[rooms]]\norigin = \"http://127.0.0.1:1\"\n";
        assert!(problems(&format!("{room}{room}")).contains("two rooms of this name"));
    }

    #[test]
    fn two_rooms_that_guard_the_same_are_refused() {
        let room =
            |name: &str, line: &str| format!("[[rooms]]\nname = \"{name}\"\norigin = \"http://127.0.0.1:1\"\n{line}\n");
        for (one, other, shared) in [
            ("", "", "/ of every host"),
            (r#"paths = ["/a/", "/b"]"#, r#"paths = ["/b/"]"#, "/b/ of every host"),
            (r#"hosts = ["a.test", "b.test"]"#, r#"hosts = ["b.test"]"#, "/ of b.test"),
        ] {
            let said = problems(&[room("one", one), room("two", other)].concat());
            assert!(said.contains("rooms one and two") && said.contains(shared), "{said}");
        }
        for (one, other) in [("", r#"paths = ["/b"]"#), ("", r#"hosts = ["a.test"]"#)] {
            assert_eq!(problems(&[room("one", one), room("two", other)].concat()), "no problem");
        }
    }
}
