//! Where the ledger is: a file, or a `PostgreSQL` server. The password never leaves this type.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use sqlx::postgres::PgConnectOptions;

use super::open::OpenLedgerError;
use crate::config::Secret;

#[derive(Clone)]
pub enum Address {
    File(PathBuf),
    Server(Box<PgConnectOptions>),
}

impl Address {
    pub fn parse(address: &Secret) -> Result<Self, OpenLedgerError> {
        let address = address.expose();
        if let Some((scheme, rest)) = address.split_once("://")
            && matches!(scheme, "postgres" | "postgresql")
        {
            let options = PgConnectOptions::from_str(address).map_err(|_| OpenLedgerError::Address(redact(address)))?;
            let has_host = !rest.starts_with('/') || rest.contains("host=");
            return match options.get_database() {
                Some(_) if has_host => Ok(Self::Server(Box::new(options))),
                _ => Err(OpenLedgerError::Address(redact(address))),
            };
        }
        file_of(address)
            .map(|path| Self::File(path.to_owned()))
            .ok_or_else(|| OpenLedgerError::Address(redact(address)))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(options) => {
                let (user, database) = (options.get_username(), options.get_database().unwrap_or_default());
                match options.get_socket() {
                    Some(socket) => write!(f, "postgres://{user}@localhost/{database}?host={}", socket.display()),
                    None => write!(f, "postgres://{user}@{}:{}/{database}", options.get_host(), options.get_port()),
                }
            }
        }
    }
}

fn file_of(address: &str) -> Option<&Path> {
    let path = match address.strip_prefix("sqlite:") {
        Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
        None if address.contains("://") => return None,
        None => address,
    };
    (!path.is_empty() && !path.contains(":memory:")).then(|| Path::new(path))
}

/// An address that was not understood may carry a password anywhere: between `://` and `@`, or behind a `?`.
fn redact(address: &str) -> String {
    let address = address.split('?').next().unwrap_or_default();
    match (address.find("://"), address.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => format!("{}…{}", &address[..scheme + 3], &address[at..]),
        (None, Some(at)) => format!("…{}", &address[at..]),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> Result<String, String> {
        Address::parse(&address.into()).map(|address| address.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses() {
        for good in ["a.db", "/x/a.db", "sqlite:a.db", "sqlite:///x/a.db", "sqlite://a.db"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in
            ["", "sqlite:", "sqlite::memory:", "mysql://x", "postgres://", "postgres://host", "postgres://h:port/db"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let server = "postgres://u@host:5433/db";
        assert_eq!(parse("postgres://u:secret@host:5433/db?sslmode=require").unwrap(), server);
        assert_eq!(parse("postgresql://u@host:5433/db?password=secret").unwrap(), server);
        let socket = "postgres://u@localhost/db?host=/run/pg";
        assert_eq!(parse("postgres://u:secret@localhost/db?host=/run/pg").unwrap(), socket);
        assert_eq!(parse("postgres:///db?host=/run/pg&user=u&password=secret").unwrap(), socket);
    }

    #[test]
    fn passwords_stay_in() {
        for bad in [
            "mysql://u:secret@host/db",
            "postgres://u:secret@host:port/db",
            "postgres://u:secret@host",
            "postgres://host:1/?password=secret",
            "sqlite://u:secret@:memory:",
            "postgres:/u:secret@host/:memory:",
        ] {
            let said = parse(bad).unwrap_err();
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
