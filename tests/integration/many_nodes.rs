//! Several gateways, as programs of their own, over one Redis: together they hold what one holds (G1 to G5).
//!
//! What is asserted is what Redis says over the whole run, and what visitors are told.

mod crowd;
mod losses;
mod nodes;
mod pauses;
mod watch;
