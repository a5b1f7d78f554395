//! One SQL text for both databases: a statement with its values, run on whichever connection there is.
//!
//! Not `sqlx::Any`: it reads a `SQLite` boolean as a number, panics on some texts and takes its options from an address
//! only. The ledger needs two kinds of values, so the seam is this file.

use sqlx::{
    FromRow, Postgres, Sqlite,
    pool::PoolConnection,
    postgres::{PgArguments, PgRow},
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::LedgerError;

/// A connection out of a pool.
#[derive(Debug)]
pub enum Connection {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

impl Connection {
    /// Whatever state it is in, nobody gets it any more: it is closed when dropped.
    pub fn condemn(&mut self) {
        match self {
            Self::Sqlite(connection) => connection.close_on_drop(),
            Self::Postgres(connection) => connection.close_on_drop(),
        }
    }

    /// Runs a statement that has no values and is not worth remembering.
    pub async fn command(&mut self, text: Text) -> Result<(), LedgerError> {
        match self {
            Self::Sqlite(connection) => _ = sqlx::raw_sql(text.sqlite).execute(&mut **connection).await?,
            Self::Postgres(connection) => _ = sqlx::raw_sql(text.postgres).execute(&mut **connection).await?,
        }
        Ok(())
    }
}

/// What each database is told: mostly the same.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl From<&'static str> for Text {
    fn from(both: &'static str) -> Self {
        Self { sqlite: both, postgres: both }
    }
}

/// A text with a locking clause in the middle, which only `PostgreSQL` needs: the writer of `SQLite` is alone.
macro_rules! locking {
    ($before:expr, $clause:literal, $after:literal) => {
        $crate::box_office::ledger::sql::Text {
            sqlite: concat!($before, $after),
            postgres: concat!($before, " ", $clause, $after),
        }
    };
}
pub(super) use locking;

/// What stands for a `$n`.
#[derive(Debug, Clone)]
pub enum Value {
    Int(i64),
    Text(Option<String>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        value.as_str().into()
    }
}

impl From<&Option<String>> for Value {
    fn from(value: &Option<String>) -> Self {
        Self::Text(value.clone())
    }
}

/// What a row is read into; `#[derive(sqlx::FromRow)]` and tuples do for both databases.
pub trait Row: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> {}

impl<T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>> Row for T {}

/// A statement and its values.
#[derive(Debug, Clone)]
pub struct Statement {
    text: Text,
    values: Vec<Value>,
}

/// A statement without values yet.
pub fn sql(text: impl Into<Text>) -> Statement {
    Statement { text: text.into(), values: Vec::new() }
}

impl Statement {
    /// Gives the next `$n` its value.
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    fn sqlite(self) -> Query<'static, Sqlite, SqliteArguments> {
        self.values.into_iter().fold(sqlx::query(self.text.sqlite), |query, value| match value {
            Value::Int(value) => query.bind(value),
            Value::Text(value) => query.bind(value),
        })
    }

    fn postgres(self) -> Query<'static, Postgres, PgArguments> {
        self.values.into_iter().fold(sqlx::query(self.text.postgres), |query, value| match value {
            Value::Int(value) => query.bind(value),
            Value::Text(value) => query.bind(value),
        })
    }

    /// Runs it; the answer is how many rows it changed.
    pub async fn run(self, on: &mut Connection) -> Result<u64, LedgerError> {
        Ok(match on {
            Connection::Sqlite(connection) => self.sqlite().execute(&mut **connection).await?.rows_affected(),
            Connection::Postgres(connection) => self.postgres().execute(&mut **connection).await?.rows_affected(),
        })
    }

    /// Every row.
    pub async fn all<T: Row>(self, on: &mut Connection) -> Result<Vec<T>, LedgerError> {
        Ok(match on {
            Connection::Sqlite(connection) => {
                let rows = self.sqlite().fetch_all(&mut **connection).await?;
                rows.iter().map(T::from_row).collect::<Result<_, _>>()?
            }
            Connection::Postgres(connection) => {
                let rows = self.postgres().fetch_all(&mut **connection).await?;
                rows.iter().map(T::from_row).collect::<Result<_, _>>()?
            }
        })
    }

    /// The only row, if there is one.
    pub async fn optional<T: Row>(self, on: &mut Connection) -> Result<Option<T>, LedgerError> {
        Ok(self.all(on).await?.pop())
    }

    /// The one value of the one row.
    pub async fn value<T>(self, on: &mut Connection) -> Result<T, LedgerError>
    where
        (T,): Row,
    {
        let row: Option<(T,)> = self.optional(on).await?;
        row.map(|(value,)| value).ok_or(LedgerError::Unreadable("answer"))
    }
}
