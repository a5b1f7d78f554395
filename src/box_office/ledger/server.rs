//! What a `PostgreSQL` server says of itself, and how many of its connections may be used.

use std::num::NonZeroU32;

use sqlx::PgConnection;

/// More would only wait for each other: the transactions are short, and so are the server's processors.
const MOST: i64 = 16;

#[derive(Debug)]
pub struct Server {
    /// As many as it has for those who are no superusers.
    granted: i64,
    /// Of those, free at this moment.
    free: i64,
    /// It reports commits that a crash may undo.
    pub forgets: bool,
    is_standby: bool,
}

impl Server {
    pub async fn ask(connection: &mut PgConnection) -> Result<Self, sqlx::Error> {
        let row: (i64, i64, i64, String, String, bool) = sqlx::query_as(
            "SELECT LEAST(current_setting('max_connections')::bigint \
                 - current_setting('superuser_reserved_connections')::bigint \
                 - COALESCE(current_setting('reserved_connections', true)::bigint, 0), \
               (SELECT CASE WHEN datconnlimit < 0 THEN 1000000 ELSE datconnlimit END::bigint \
                FROM pg_database WHERE datname = current_database()), \
               (SELECT CASE WHEN rolconnlimit < 0 THEN 1000000 ELSE rolconnlimit END::bigint \
                FROM pg_roles WHERE rolname = current_user)), \
             current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint, \
             (SELECT COUNT(*) FROM pg_stat_activity WHERE datid IS NOT NULL AND pid <> pg_backend_pid()), \
             current_setting('synchronous_commit'), current_setting('fsync'), pg_is_in_recovery()",
        )
        .fetch_one(connection)
        .await?;
        let (granted, for_all, used, synchronous_commit, fsync, is_standby) = row;
        let forgets = synchronous_commit == "off";
        if forgets {
            tracing::warn!("the server has synchronous_commit = off; the ledger turns it on for itself");
        }
        if fsync == "off" {
            tracing::warn!("the server has fsync = off: a power cut loses orders and may ruin the database");
        }
        Ok(Self { granted, free: granted.min(for_all - used), forgets, is_standby })
    }

    /// How many connections to use when `wanted` were asked for; or what to do.
    pub fn connections(&self, wanted: Option<NonZeroU32>) -> Result<u32, String> {
        if self.is_standby {
            return Err("It is a standby, which only reads: give the primary's address".to_owned());
        }
        let granted = self.granted;
        let most = match wanted {
            Some(wanted) if i64::from(wanted.get()) > granted => {
                return Err(format!(
                    "It grants at most {granted} connections, {wanted} were asked for with --database-connections: ask \
                     for fewer, or raise max_connections on the server"
                ));
            }
            Some(wanted) => i64::from(wanted.get()),
            // A quarter: other box offices, backups and whoever looks after it need some too.
            None => (granted / 4).clamp(2, MOST).min(granted),
        };
        if most < 1 {
            return Err("It grants no connections: raise max_connections on the server".to_owned());
        }
        if self.free < most {
            tracing::warn!(
                wanted = most,
                free = self.free,
                "the server has fewer connections free than the ledger may use: give others fewer, raise \
                 max_connections, or set --database-connections"
            );
        }
        Ok(u32::try_from(most).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(granted: i64) -> Server {
        Server { granted, free: granted, forgets: false, is_standby: false }
    }

    #[test]
    fn room_is_left_for_others() {
        for (granted, used) in [(97, 16), (47, 11), (17, 4), (7, 2), (2, 2), (1, 1), (1_000_000, 16)] {
            assert_eq!(server(granted).connections(None), Ok(used), "{granted}");
        }
        assert_eq!(server(97).connections(NonZeroU32::new(97)), Ok(97));
        let said = server(97).connections(NonZeroU32::new(98)).unwrap_err();
        assert!(said.contains("at most 97") && said.contains("max_connections"), "{said}");
        assert!(server(0).connections(None).is_err());
        assert!(Server { is_standby: true, ..server(97) }.connections(None).unwrap_err().contains("primary"));
    }
}
