//! The ledger on `PostgreSQL`, where it differs from a file: it can be somewhere else, away, full, of another version,
//! and several box offices write to it at the same time.

mod nodes;
mod opening;
mod outages;
mod races;
