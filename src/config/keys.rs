//! Where secrets live: in the data directory (created on first start) or in the environment.
