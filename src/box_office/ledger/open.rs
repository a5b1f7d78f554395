//! Opening a ledger: the connections, and the schema brought up to date.

use std::{num::NonZeroU32, path::Path, time::Duration};

use sqlx::{
    PgConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::time::timeout;

use super::{Ledger, LedgerError, address::Address, migrations, pools::Pools, server::Server};
use crate::config::Secret;

/// Another process may write the same file; its transactions are short.
const BUSY: Duration = Duration::from_secs(5);
/// How long a caller waits for its turn before it is told to come back.
const TURN: Duration = Duration::from_secs(5);
const READERS: u32 = 4;
/// How long a server may take to answer at the start.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of one connection to a server, in milliseconds. A statement of ours takes one; whoever waits longer for a row than
/// the database takes to find a deadlock (1 s) is better told to come back.
const TIMEOUTS: [(&str, &str); 3] =
    [("statement_timeout", "5000"), ("lock_timeout", "3000"), ("idle_in_transaction_session_timeout", "10000")];

/// Why a ledger would not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenLedgerError {
    /// The address is of a kind this version does not have.
    #[error("database {0:?}: use a file's path, sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Address(String),
    /// The file cannot be opened or created.
    #[error("cannot open the ledger {path:?}: {error}. Its folder must exist and be writable")]
    Open {
        /// As configured.
        path: String,
        /// What the database said.
        error: sqlx::Error,
    },
    /// The server cannot be used.
    #[error("cannot use the ledger's database {address}: {error}. {cure}")]
    Server {
        /// As configured, without the password.
        address: String,
        /// What the server said.
        error: String,
        /// What to do.
        cure: String,
    },
    /// The schema could not be brought up to date.
    #[error("cannot migrate the ledger: {0}")]
    Migrate(sqlx::migrate::MigrateError),
    /// The schema is not one of this version.
    #[error(
        "the ledger was written by another version of stanchion: it knows migration {0}, this one does not. \
         Start the newer version; it reads what older ones wrote"
    )]
    Newer(i64),
    /// The event cannot be written.
    #[error(
        "cannot offer {offered} general-admission tickets: {taken} are already taken in the ledger. \
         Set general_admission to at least that"
    )]
    Oversold {
        /// As configured.
        offered: u32,
        /// As ordered.
        taken: u64,
    },
    /// The ledger opened, then failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl From<sqlx::migrate::MigrateError> for OpenLedgerError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        match error {
            sqlx::migrate::MigrateError::VersionMissing(version) => Self::Newer(version),
            other => Self::Migrate(other),
        }
    }
}

impl Ledger {
    /// Opens the ledger at `address`, creates the file if it is one, and brings its schema up to date. On a server it
    /// uses at most `connections`, or as many as leave room for others.
    pub async fn open(address: &Secret, connections: Option<NonZeroU32>) -> Result<Self, OpenLedgerError> {
        let address = Address::parse(address)?;
        let pools = match &address {
            Address::File(path) => file(path).await?,
            Address::Server(options) => {
                let mut first = reach(&address, options).await?;
                let server = Server::ask(&mut first).await.map_err(|error| refused(&address, &error))?;
                let most = server.connections(connections).map_err(|cure| OpenLedgerError::Server {
                    address: address.to_string(),
                    error: "it cannot serve this box office".to_owned(),
                    cure,
                })?;
                migrations::run_on_server(&mut first).await?;
                drop(first);
                let pool = PgPoolOptions::new().max_connections(most).acquire_timeout(TURN);
                // Whether a connection still works shows with its first statement, which is then repeated on another.
                let pool = pool.test_before_acquire(false);
                tracing::info!(%address, connections = most, "the ledger is on PostgreSQL");
                Pools::Postgres(pool.connect_lazy_with(session(options, &server)))
            }
        };
        Ok(Self { pools })
    }
}

async fn file(path: &Path) -> Result<Pools, OpenLedgerError> {
    let failed = |error| OpenLedgerError::Open { path: path.display().to_string(), error };
    let options = file_options(path).create_if_missing(true);
    let writer = SqlitePoolOptions::new().max_connections(1).acquire_timeout(TURN);
    let writer = writer.connect_with(options.clone()).await.map_err(failed)?;
    migrations::SQLITE.run(&writer).await?;
    let readers = SqlitePoolOptions::new().max_connections(READERS).acquire_timeout(TURN);
    let readers = readers.connect_with(options.pragma("query_only", "1")).await.map_err(failed)?;
    Ok(Pools::Sqlite { writer, readers })
}

pub fn file_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .journal_mode(SqliteJournalMode::Wal)
        // Money: a commit that was reported must survive a power cut.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY)
}

fn session(options: &PgConnectOptions, server: &Server) -> PgConnectOptions {
    let options = options.clone().application_name("stanchion box office").options(TIMEOUTS);
    if server.forgets { options.options([("synchronous_commit", "on")]) } else { options }
}

/// The first connection, which has no timeouts: a migration may take its time.
pub async fn reach(address: &Address, options: &PgConnectOptions) -> Result<PgConnection, OpenLedgerError> {
    use sqlx::ConnectOptions as _;
    let options = options.clone().application_name("stanchion box office (start)");
    match timeout(PATIENCE, options.connect()).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(refused(address, &error)),
        Err(_) => Err(OpenLedgerError::Server {
            address: address.to_string(),
            error: format!("no answer within {} s", PATIENCE.as_secs()),
            cure: "Check the address, the network and the firewall".to_owned(),
        }),
    }
}

pub fn refused(address: &Address, error: &sqlx::Error) -> OpenLedgerError {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code).unwrap_or_default().into_owned();
    let cure = match (code.as_str(), error) {
        ("28P01" | "28000", _) => "Check the user and the password in the address, and pg_hba.conf on the server",
        ("3D000", _) => "Make it first: createdb --owner USER DATABASE",
        ("53300", _) => "Raise max_connections on the server, or give other programs fewer connections",
        ("42501", _) => "The user must own the database, or be granted CREATE on its schema public",
        ("57P03", _) => "The server is starting up or shutting down: try again in a moment",
        (_, sqlx::Error::Io(_)) => "Is the server running and reachable at this address?",
        (_, sqlx::Error::Tls(_)) => "Check sslmode and sslrootcert in the address",
        _ => "See the server's log",
    };
    OpenLedgerError::Server { address: address.to_string(), error: error.to_string(), cure: cure.to_owned() }
}
