//! The connections: one that writes and a few that read, or those a server grants.

use sqlx::{PgPool, SqlitePool};

use super::{LedgerError, sql::Connection};

/// Cloning shares the connections.
#[derive(Debug, Clone)]
pub enum Pools {
    /// One connection writes, so that a transaction never has to give way half done; the others read beside it.
    Sqlite { writer: SqlitePool, readers: SqlitePool },
    /// Rows are locked, not the whole.
    Postgres(PgPool),
}

impl Pools {
    pub async fn writer(&self) -> Result<Connection, LedgerError> {
        Ok(match self {
            Self::Sqlite { writer, .. } => Connection::Sqlite(writer.acquire().await?),
            Self::Postgres(pool) => Connection::Postgres(pool.acquire().await?),
        })
    }

    pub async fn reader(&self) -> Result<Connection, LedgerError> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Connection::Sqlite(readers.acquire().await?),
            Self::Postgres(pool) => Connection::Postgres(pool.acquire().await?),
        })
    }

    /// The most connections of a kind.
    pub fn most(&self) -> u32 {
        match self {
            Self::Sqlite { readers, .. } => readers.options().get_max_connections(),
            Self::Postgres(pool) => pool.options().get_max_connections(),
        }
    }
}
