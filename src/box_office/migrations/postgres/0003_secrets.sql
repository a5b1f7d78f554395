-- Secrets that every box office on this ledger shares and that nobody has to configure: the first to need one makes it.
CREATE TABLE secrets (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
);
