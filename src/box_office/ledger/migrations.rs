//! The schema's versions. A ledger is brought up to date when it is opened; `stanchion migrate` does only that.

use sqlx::{
    PgConnection, Row as _,
    migrate::{MigrateError, Migrator},
    sqlite::SqliteConnection,
};

use super::{
    address::Address,
    open::{self, OpenLedgerError},
};
use crate::config::Secret;

pub static SQLITE: Migrator = sqlx::migrate!("src/box_office/migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("src/box_office/migrations/postgres");

/// What a ledger's schema needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrations {
    /// Where, without a password.
    pub address: String,
    /// Those that were due, oldest first, as `1 ledger`.
    pub due: Vec<String>,
}

/// Which migrations are due at `address`; they are run unless `only_look`.
pub async fn migrate(address: &Secret, only_look: bool) -> Result<Migrations, OpenLedgerError> {
    use sqlx::{ConnectOptions as _, Connection as _};
    let address = Address::parse(address)?;
    let due = match &address {
        Address::File(path) if only_look && !path.exists() => due(&SQLITE, &[])?,
        Address::File(path) => {
            let failed = |error| OpenLedgerError::Open { path: path.display().to_string(), error };
            let options = open::file_options(path).create_if_missing(!only_look);
            let mut connection = options.connect().await.map_err(failed)?;
            let due = due(&SQLITE, &applied_in_file(&mut connection).await.map_err(failed)?)?;
            if !only_look {
                SQLITE.run_direct(None, &mut connection, false).await?;
            }
            connection.close().await.map_err(failed)?;
            due
        }
        Address::Server(options) => {
            let mut connection = open::reach(&address, options).await?;
            let applied = applied_on_server(&mut connection).await;
            let due = due(&POSTGRES, &applied.map_err(|error| open::refused(&address, &error))?)?;
            if !only_look {
                run_on_server(&mut connection).await?;
            }
            due
        }
    };
    Ok(Migrations { address: address.to_string(), due })
}

/// Those who start at once take turns: the migrator holds an advisory lock.
pub async fn run_on_server(connection: &mut PgConnection) -> Result<(), MigrateError> {
    POSTGRES.run_direct(None, connection, false).await
}

fn due(migrator: &Migrator, applied: &[i64]) -> Result<Vec<String>, OpenLedgerError> {
    if let Some(unknown) = applied.iter().find(|version| !migrator.version_exists(**version)) {
        return Err(OpenLedgerError::Newer(*unknown));
    }
    let due = migrator.iter().filter(|migration| !applied.contains(&migration.version));
    Ok(due.map(|migration| format!("{} {}", migration.version, migration.description)).collect())
}

const APPLIED: &str = "SELECT version FROM _sqlx_migrations";

async fn applied_in_file(connection: &mut SqliteConnection) -> Result<Vec<i64>, sqlx::Error> {
    let exists = "SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    let exists: i64 = sqlx::query_scalar(exists).fetch_one(&mut *connection).await?;
    match exists {
        0 => Ok(Vec::new()),
        _ => sqlx::query(APPLIED).fetch_all(connection).await?.iter().map(|row| row.try_get(0)).collect(),
    }
}

async fn applied_on_server(connection: &mut PgConnection) -> Result<Vec<i64>, sqlx::Error> {
    let exists = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
    let exists: bool = sqlx::query_scalar(exists).fetch_one(&mut *connection).await?;
    if !exists {
        return Ok(Vec::new());
    }
    sqlx::query(APPLIED).fetch_all(connection).await?.iter().map(|row| row.try_get(0)).collect()
}
