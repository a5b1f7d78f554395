//! Transactions: each on a task of its own, repeated when it lost a race, its connection given back clean or not at all.
//!
//! `sqlx`'s own `begin` is not used: on `PostgreSQL` it leaves an open transaction in the pool when it is cancelled.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Ledger, LedgerError,
    pools::Pools,
    rows::signed,
    sql::{Connection, Text, sql},
};

/// How a transaction ends.
pub enum End<T> {
    Commit(T),
    Rollback(T),
}

/// What is done on a connection. It may be done more than once, and only the last time counts.
pub type Work<A, T> = for<'c> fn(&'c mut Connection, &'c A) -> BoxFuture<'c, Result<T, LedgerError>>;

/// How often a transaction that lost a race is tried.
const TRIES: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// No try begins after this: whoever waits is told to come back instead.
const PATIENCE: Duration = Duration::from_secs(5);
/// One try on a server that is somewhere else. Its own timeouts come first, unless the network swallows its answers.
const DEADLINE: Duration = Duration::from_secs(12);

#[derive(Debug, Clone, Copy)]
pub enum Mode {
    /// No transaction; nothing is written.
    Look,
    /// Every statement sees the same instant; nothing is written.
    Snapshot,
    /// One transaction.
    Write,
}

impl Mode {
    fn begin(self) -> Option<Text> {
        match self {
            Self::Look => None,
            Self::Snapshot => {
                Some(Text { sqlite: "BEGIN", postgres: "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY" })
            }
            // At once, so that a transaction never has to give way half done.
            Self::Write => Some(Text { sqlite: "BEGIN IMMEDIATE", postgres: "BEGIN ISOLATION LEVEL READ COMMITTED" }),
        }
    }
}

impl Ledger {
    /// Runs `work` in one write transaction.
    pub(super) async fn write<A, T>(&self, args: A, work: Work<A, End<T>>) -> Result<T, LedgerError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(Mode::Write, args, work).await
    }

    /// Whether `ask`, a question about $1 as now, is answered with yes. Who only might have something to write asks before:
    /// an idle worker must not take the writer's turn every second.
    pub(super) async fn is_due(&self, ask: &'static str, now_ms: u64) -> Result<bool, LedgerError> {
        self.run(Mode::Look, (ask, now_ms), |on, (ask, now_ms)| {
            Box::pin(async move { Ok(End::Rollback(sql(*ask).bind(signed(*now_ms)).value(on).await?)) })
        })
        .await
    }

    /// Runs `work` on a task of its own: a caller that goes away (a client that hung up) cannot cut it in the middle.
    pub(super) async fn run<A, T>(&self, mode: Mode, args: A, work: Work<A, End<T>>) -> Result<T, LedgerError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let pools = self.pools.clone();
        let task = tokio::spawn(async move { repeat(&pools, mode, &args, work).await });
        task.await.map_err(|_| LedgerError::Interrupted)?
    }
}

async fn repeat<A: Sync, T>(pools: &Pools, mode: Mode, args: &A, work: Work<A, End<T>>) -> Result<T, LedgerError> {
    let started = Instant::now();
    let (mut races, mut breaks) = (0, 0);
    loop {
        let (error, is_undone) = match once(pools, mode, args, work).await {
            Ok(value) => return Ok(value),
            Err(Failed { error, is_undone }) => (error, is_undone),
        };
        if started.elapsed() >= PATIENCE || !is_undone {
            return Err(error);
        }
        match error {
            LedgerError::Raced(error) => {
                races += 1;
                if races >= TRIES {
                    return Err(given_up(error));
                }
                tracing::debug!(%error, races, "a transaction lost a race and is repeated");
                sleep((FIRST_PAUSE * (1 << races.min(6))).mul_f64(rand::random_range(0.5..1.5))).await;
            }
            // After the server was restarted, every connection of the pool is dead, and is found out one by one.
            LedgerError::Away(_) if breaks <= pools.most() => {
                breaks += 1;
                sleep(FIRST_PAUSE.mul_f64(rand::random_range(0.5..1.5))).await;
            }
            other => return Err(other),
        }
    }
}

/// A constraint that is violated every time is no race.
fn given_up(error: sqlx::Error) -> LedgerError {
    match error.as_database_error() {
        Some(refusal) if refusal.is_unique_violation() => LedgerError::Database(error),
        _ => LedgerError::Raced(error),
    }
}

struct Failed {
    error: LedgerError,
    /// Nothing of it can have been committed.
    is_undone: bool,
}

impl From<LedgerError> for Failed {
    fn from(error: LedgerError) -> Self {
        Self { error, is_undone: true }
    }
}

async fn once<A: Sync, T>(pools: &Pools, mode: Mode, args: &A, work: Work<A, End<T>>) -> Result<T, Failed> {
    let connection = match mode {
        Mode::Write => pools.writer().await?,
        Mode::Look | Mode::Snapshot => pools.reader().await?,
    };
    let is_remote = matches!(connection, Connection::Postgres(_));
    let mut taken = Taken(Some(connection));
    let result = if is_remote {
        let on_it = timeout(DEADLINE, transact(&mut taken, mode, args, work)).await;
        // Cut off at an unknown point.
        on_it.unwrap_or(Err(Failed { error: LedgerError::Busy, is_undone: false }))
    } else {
        transact(&mut taken, mode, args, work).await
    };
    if result.is_ok() {
        taken.give_back();
    }
    result
}

async fn transact<A, T>(taken: &mut Taken, mode: Mode, args: &A, work: Work<A, End<T>>) -> Result<T, Failed> {
    let Some(connection) = &mut taken.0 else { return Err(LedgerError::Interrupted.into()) };
    let Some(begin) = mode.begin() else {
        let (End::Commit(value) | End::Rollback(value)) = work(connection, args).await?;
        return Ok(value);
    };
    connection.command(begin).await?;
    match work(connection, args).await {
        Ok(End::Commit(value)) => {
            let committed = connection.command("COMMIT".into()).await;
            committed.map_err(|error| Failed { is_undone: matches!(error, LedgerError::Raced(_)), error })?;
            Ok(value)
        }
        Ok(End::Rollback(value)) => {
            connection.command("ROLLBACK".into()).await?;
            Ok(value)
        }
        Err(error) => {
            // The first error is the one to tell; should this fail too, the connection is not used again.
            if connection.command("ROLLBACK".into()).await.is_ok() {
                taken.give_back();
            }
            Err(error.into())
        }
    }
}

/// A connection on loan. Unless it was given back, by a transaction that came to its end, it is closed: nobody must get
/// one with a transaction open or an answer outstanding.
struct Taken(Option<Connection>);

impl Taken {
    fn give_back(&mut self) {
        self.0 = None;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.0 {
            connection.condemn();
        }
    }
}
