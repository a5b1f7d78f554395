//! Stanchion: a self-hosted virtual waiting room, and the box office behind it.
//!
//! # The one idea
//!
//! Redis is a fast cache of facts that are durable elsewhere: a visitor's place in the signed token the
//! visitor holds, a sale in the SQL ledger. Hot paths verify signatures and read local snapshots, and never wait
//! for the store: a session that has been used up by half is renewed with one script call, and that is all.
//!
//! # Layout
//!
//! | module | holds |
//! | --- | --- |
//! | [`clock`], [`shutdown`], [`telemetry`], [`listener`], [`tls`], [`config`] | what everything else leans on |
//! | [`embed`] | files that travel inside the binary: content-hashed names, compressed copies, the pages' CSP |
//! | [`store`] | the one-method engine that runs a Lua script; in process or on Redis; knows no queue key |
//! | [`queue`] | the line: keys, typed bindings of the scripts in `lua/`, snapshot and rank sketch |
//! | [`tokens`] | queue and session tokens: mint, verify, rotate |
//! | [`pages`] | every page a visitor sees while waiting, and the assets |
//! | [`admission`] | the background tasks of a room: call, snapshot, sweep, presence; the pace, by what the shop can take |
//! | [`gateway`] | the public listener: gate, proxy, responses |
//! | [`room`] | the visitor endpoints under `/__room/` |
//! | [`admin`] | the private listener |
//! | [`box_office`] | seats, holds, orders, ledger, payments; knows nothing of the waiting room |
//! | [`pay_sandbox`] | a payment provider to test against |
//! | [`rehearse`] | thousands of visitors in one process, or a million on virtual time, and a verdict |
//! | [`race`] | buyers racing for a seat, under the shop's scripts and under other ways to sell |
//! | [`cli`] | arguments and wiring |
//!
//! Dependencies point one way: `clock, shutdown, telemetry, embed, listener, tls, store, pages` ← `queue, tokens` ←
//! `config` ← `admission` ← `gateway` ← `room, admin` ← `cli`. The shop, [`box_office`] and [`pay_sandbox`], knows
//! nothing of the waiting room, nor it of them; [`race`] sells by the shop's inventory, and knows as little of the room;
//! [`rehearse`] is a client of both, and only its [`rehearse::simulate`] uses the steps of `admission`. A test scans the
//! imports and holds these lines.
//!
//! # Life of a request
//!
//! 1. [`gateway`] accepts the connection, with TLS or without, lets only heads through that nobody could read in two ways,
//!    finds out who sends the request, and asks [`gateway::gate`].
//! 2. A bypass rule or a valid session token sends it straight to [`gateway::proxy`]: no store is touched, but once
//!    in half a session's life to renew it.
//!    Of a route whose answers are kept for several, one request goes there for all who ask at once.
//! 3. A called visitor's queue token is exchanged for a session by one `claim` script, then forwarded too.
//! 4. Whoever comes new joins with one `join` script, which those who arrive at the same moment share. It lets them
//!    straight in while nobody waits and there is room. The others are answered with the waiting page or its JSON twin.
//!    Images, prefetches and the like get that answer too, and no place.
//! 5. The page polls [`room`], which answers from the snapshot and the sketch of ranks that [`admission`] refreshes a
//!    few times a second, until the visitor is called. The poll of someone who merely waits is answered at once, before
//!    the router.
//! 6. The origin's answer streams back; its `Stanchion-*` headers are acted on and removed on the way, and how long it
//!    took and whether it failed is counted: [`admission::policy`] sets the pace by that.

pub mod admin;
pub mod admission;
pub mod box_office;
pub mod cli;
pub mod clock;
pub mod config;
pub mod embed;
pub mod gateway;
pub mod listener;
pub mod pages;
pub mod pay_sandbox;
pub mod queue;
pub mod race;
pub mod rehearse;
pub mod room;
pub mod shutdown;
pub mod store;
pub mod telemetry;
pub mod tls;
pub mod tokens;
