//! The seats as rows, in a schema of the race's own, and the steps that the strategies share.

use std::{str::FromStr as _, time::Duration};

use futures_util::future::try_join_all;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, PgExecutor, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{sync::Mutex, time::timeout};

use super::{
    Plan, RaceError, Stock,
    plan::{Buyer, Wish},
};

/// How long the database may take to let somebody in.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// How long it may work on one statement. Whoever waits for a lock longer than that has met a defect.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the steps before and after a race may take.
const CARE_DEADLINE: Duration = Duration::from_secs(30);

/// Whether a race can use this address.
pub fn is_postgresql(url: &str) -> bool {
    options(url).is_some()
}

fn options(url: &str) -> Option<PgConnectOptions> {
    let is_ours = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    is_ours.then(|| PgConnectOptions::from_str(url).ok())?
}

/// A schema with a table of seats and one of sales. Neither has a constraint that would stop a second sale.
#[derive(Debug)]
pub struct Database {
    options: PgConnectOptions,
    schema: String,
    pool: u32,
    seats: u32,
    acquire: Duration,
    /// Besides the pool: prepares and counts.
    care: Mutex<PgConnection>,
}

impl Database {
    /// Connects and makes the schema.
    pub async fn open(url: &str, plan: &Plan) -> Result<Self, RaceError> {
        let options = options(url).ok_or(RaceError::Address)?.application_name("stanchion race");
        let options = options.disable_statement_logging();
        let schema = format!("stanchion_race_{:016x}", rand::random::<u64>());
        let mut care = connect(&options).await?;
        leave_room(&mut care, plan.pool).await?;
        let made = sqlx::query(AssertSqlSafe(format!("CREATE SCHEMA {schema}"))).execute(&mut care);
        made.await.map_err(RaceError::Schema)?;
        let options = options.options([
            ("search_path", schema.clone()),
            // What every strategy here is written for, and the server's default unless somebody changed it.
            ("default_transaction_isolation", "read committed".to_owned()),
            ("statement_timeout", STATEMENT_TIMEOUT.as_millis().to_string()),
            // Both end a wait for a row; this one says what it was.
            ("lock_timeout", (STATEMENT_TIMEOUT.as_millis() - 1).to_string()),
            ("idle_in_transaction_session_timeout", CARE_DEADLINE.as_millis().to_string()),
        ]);
        let (pool, seats, acquire) = (plan.pool, plan.seats, plan.deadline);
        Ok(Self { options, schema, pool, seats, acquire, care: Mutex::new(care) })
    }

    /// Lays out the seats anew, all free.
    pub async fn reset(&self) -> Result<(), RaceError> {
        let (schema, last) = (&self.schema, i64::from(self.seats) - 1);
        self.care(format!(
            "DROP TABLE IF EXISTS {schema}.seats, {schema}.sales;
             CREATE TABLE {schema}.seats (id bigint PRIMARY KEY, buyer bigint, version bigint NOT NULL DEFAULT 0);
             CREATE INDEX free ON {schema}.seats (id) WHERE buyer IS NULL;
             CREATE TABLE {schema}.sales (seat bigint NOT NULL, buyer bigint NOT NULL);
             INSERT INTO {schema}.seats (id) SELECT generate_series(0, {last});
             ANALYZE {schema}.seats"
        ))
        .await
    }

    /// The connections of one race, all open, so that none of it is spent on making them.
    pub async fn pool(&self) -> Result<PgPool, RaceError> {
        let pool = PgPoolOptions::new()
            .max_connections(self.pool)
            .acquire_timeout(self.acquire)
            // Nobody gives up a connection during a race, and a ping before each use would be half of its time.
            .test_before_acquire(false)
            .connect_lazy_with(self.options.clone());
        let opened = timeout(CARE_DEADLINE, try_join_all((0..self.pool).map(|_| pool.acquire()))).await;
        drop(opened.map_err(|_| RaceError::Silent(CARE_DEADLINE))?.map_err(RaceError::Unreachable)?);
        Ok(pool)
    }

    /// Counts what is on record.
    pub async fn count(&self) -> Result<Stock, RaceError> {
        let schema = &self.schema;
        let text = format!(
            "SELECT (SELECT count(*) FROM {schema}.seats), (SELECT count(*) FROM {schema}.seats WHERE buyer IS NULL),
                    (SELECT count(*) FROM {schema}.sales), (SELECT count(DISTINCT seat) FROM {schema}.sales)"
        );
        let counted = async {
            let mut care = self.care.lock().await;
            sqlx::query_as::<_, (i64, i64, i64, i64)>(AssertSqlSafe(text)).fetch_one(&mut *care).await
        };
        let (total, free, sales, seats_sold) = in_time(counted).await?;
        Ok(Stock { total: count(total), free, sales: count(sales), duplicates: count(sales - seats_sold) })
    }

    /// Removes the schema.
    pub async fn close(&self) -> Result<(), RaceError> {
        self.care(format!("DROP SCHEMA {} CASCADE", self.schema)).await
    }

    /// Runs statements on a connection that no buyer uses; it waits for buyers who were cut off to be rolled back.
    async fn care(&self, statements: String) -> Result<(), RaceError> {
        in_time(async {
            let mut care = self.care.lock().await;
            sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut *care).await
        })
        .await?;
        Ok(())
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, RaceError> {
    Ok(timeout(CARE_DEADLINE, asked).await.map_err(|_| RaceError::Silent(CARE_DEADLINE))??)
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, RaceError> {
    let options = options.clone().options([("statement_timeout", CARE_DEADLINE.as_millis().to_string())]);
    let connected = timeout(CONNECT_DEADLINE, PgConnection::connect_with(&options)).await;
    connected.map_err(|_| RaceError::Silent(CONNECT_DEADLINE))?.map_err(RaceError::Unreachable)
}

/// Refuses a pool that the server has no room for: the client would try again and again.
async fn leave_room(care: &mut PgConnection, pool: u32) -> Result<(), RaceError> {
    let left = "SELECT current_setting('max_connections')::bigint
                     - current_setting('superuser_reserved_connections')::bigint
                     - (SELECT sum(numbackends) FROM pg_stat_database)::bigint";
    let left: i64 = in_time(sqlx::query_scalar(left).fetch_one(care)).await?;
    if i64::from(pool) <= left { Ok(()) } else { Err(RaceError::TooFewConnections { pool, left: left.max(0) }) }
}

/// Closes what is left of a race.
pub async fn close(pool: &PgPool) {
    // A connection that does not end by then ends with the process; its statement ended by its own timeout.
    let _ = timeout(STATEMENT_TIMEOUT, pool.close()).await;
}

/// A free seat as wished for, read by one of these statements.
pub async fn look(
    executor: impl PgExecutor<'_>,
    wish: Wish,
    one: &'static str,
    any: &'static str,
) -> Result<Option<i64>, sqlx::Error> {
    let (statement, seat) = wish.statement(one, any);
    sqlx::query_scalar(statement).bind(seat).fetch_optional(executor).await
}

/// Writes the seat to the buyer, whoever has it, and records the sale.
pub async fn sell(executor: impl PgExecutor<'_>, seat: i64, buyer: Buyer) -> Result<(), sqlx::Error> {
    let text = "WITH sold AS (UPDATE seats SET buyer = $2, version = version + 1 WHERE id = $1 RETURNING id)
                INSERT INTO sales (seat, buyer) SELECT id, $2 FROM sold";
    sqlx::query(text).bind(seat).bind(i64::from(buyer.number)).execute(executor).await?;
    Ok(())
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
