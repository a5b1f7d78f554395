//! Answers kept under the client's key, so that a retry gets the same one.

use sqlx::SqliteConnection;

use super::{End, Ledger, LedgerError, rows::signed};

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
    pub async fn stored_answer(&self, scope: &str, key: &str) -> Result<Option<StoredAnswer>, LedgerError> {
        stored(&mut *self.readers.acquire().await?, scope, key).await
    }

    /// Forgets some of the answers given before `before_ms`.
    pub async fn forget_answers(&self, before_ms: u64) -> Result<(), LedgerError> {
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query(
                    "DELETE FROM idempotency_keys WHERE (scope, key) IN \
                     (SELECT scope, key FROM idempotency_keys WHERE created_ms < $1 ORDER BY created_ms LIMIT 1000)",
                )
                .bind(signed(before_ms))
                .execute(tx)
                .await?;
                Ok(End::Commit(()))
            })
        })
        .await
    }
}

pub(super) async fn stored(
    connection: &mut SqliteConnection,
    scope: &str,
    key: &str,
) -> Result<Option<StoredAnswer>, LedgerError> {
    let sql = "SELECT fingerprint, status, answer FROM idempotency_keys WHERE scope = $1 AND key = $2";
    Ok(sqlx::query_as(sql).bind(scope).bind(key).fetch_optional(connection).await?)
}

pub(super) async fn store(
    tx: &mut SqliteConnection,
    scope: &str,
    key: &str,
    answer: &StoredAnswer,
    now_ms: u64,
) -> Result<(), LedgerError> {
    sqlx::query(
        "INSERT INTO idempotency_keys (scope, key, fingerprint, status, answer, created_ms) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(scope)
    .bind(key)
    .bind(&answer.fingerprint)
    .bind(answer.status)
    .bind(&answer.answer)
    .bind(signed(now_ms))
    .execute(tx)
    .await?;
    Ok(())
}
