//! Which ledger: the same arguments wherever one is opened.

use std::{num::NonZeroU32, path::Path};

use crate::config::Secret;

#[derive(Debug, Clone, clap::Args)]
pub struct DatabaseArgs {
    /// The ledger: a file, or postgres://USER:PASSWORD@HOST/DATABASE [default: DIR/ledger.sqlite].
    #[arg(long, env = "STANCHION_DATABASE", value_name = "URL", hide_env_values = true)]
    database: Option<Secret>,
    /// Most connections to PostgreSQL [default: a quarter of those it grants, at most 16].
    #[arg(long, env = "STANCHION_DATABASE_CONNECTIONS", value_name = "N")]
    pub database_connections: Option<NonZeroU32>,
}

impl DatabaseArgs {
    /// The one given, or the file in `data`.
    pub fn address(&self, data: &Path) -> Secret {
        let in_data = || format!("sqlite:{}", data.join("ledger.sqlite").display()).into();
        self.database.clone().unwrap_or_else(in_data)
    }
}
