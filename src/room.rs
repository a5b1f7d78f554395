//! The visitor endpoints under `/__room/`.
