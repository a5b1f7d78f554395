//! The engine on Redis 7 or Valkey.
