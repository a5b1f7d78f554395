//! Answers kept under the client's key, so that a retry gets the same one.

use super::{Connection, End, Ledger, LedgerError, Mode, locking, rows::signed, sql};

/// An answer given earlier.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredAnswer {
    /// Digest of the request it answered.
    pub fingerprint: String,
    /// HTTP status.
    pub status: i64,
    /// Body.
    pub answer: String,
}

impl Ledger {
    /// What was answered under `key`, if anything.
    pub async fn stored_answer(&self, scope: &'static str, key: &str) -> Result<Option<StoredAnswer>, LedgerError> {
        self.run(Mode::Look, (scope, key.to_owned()), |on, (scope, key)| {
            Box::pin(async move { Ok(End::Rollback(stored(on, scope, key).await?)) })
        })
        .await
    }

    /// Forgets some of the answers given before `before_ms`.
    pub async fn forget_answers(&self, before_ms: u64) -> Result<(), LedgerError> {
        self.write(before_ms, |tx, before_ms| {
            Box::pin(async move {
                let forget = locking!(
                    "DELETE FROM idempotency_keys WHERE (scope, key) IN \
                     (SELECT scope, key FROM idempotency_keys WHERE created_ms < $1 ORDER BY created_ms LIMIT 1000",
                    "FOR UPDATE SKIP LOCKED",
                    ")"
                );
                sql(forget).bind(signed(*before_ms)).run(tx).await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }
}

pub(super) async fn stored(on: &mut Connection, scope: &str, key: &str) -> Result<Option<StoredAnswer>, LedgerError> {
    let find = "SELECT fingerprint, status, answer FROM idempotency_keys WHERE scope = $1 AND key = $2";
    sql(find).bind(scope).bind(key).optional(on).await
}

/// Keeps `answer` unless there is one already, which is then given back. Waits for a transaction that is about to.
pub(super) async fn store(
    tx: &mut Connection,
    scope: &str,
    key: &str,
    answer: &StoredAnswer,
    now_ms: u64,
) -> Result<Option<StoredAnswer>, LedgerError> {
    let stored_now = sql("INSERT INTO idempotency_keys (scope, key, fingerprint, status, answer, created_ms) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING")
    .bind(scope)
    .bind(key)
    .bind(&answer.fingerprint)
    .bind(answer.status)
    .bind(&answer.answer)
    .bind(signed(now_ms))
    .run(tx)
    .await?;
    if stored_now == 1 {
        return Ok(None);
    }
    // Forgotten in between, after a day: the next try finds nothing.
    stored(tx, scope, key).await?.map(Some).ok_or(LedgerError::Busy)
}
