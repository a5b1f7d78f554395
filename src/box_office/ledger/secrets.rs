//! Secrets that all box offices on one ledger share, made by the first that needs one. They outlive every secret that
//! the operator rotates.

use super::{End, Ledger, LedgerError, sql};
use crate::config::Secret;

impl Ledger {
    /// The secret of this name: the same for everybody, always.
    pub async fn secret(&self, name: &'static str) -> Result<Secret, LedgerError> {
        let fresh = format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>());
        let value: String = self
            .write((name, fresh), |tx, (name, fresh)| {
                Box::pin(async move {
                    sql("INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
                        .bind(*name)
                        .bind(fresh)
                        .run(tx)
                        .await?;
                    let value = sql("SELECT value FROM secrets WHERE name = $1").bind(*name).value(tx).await?;
                    Ok(End::Commit(value))
                })
            })
            .await?;
        Ok(value.into())
    }
}
