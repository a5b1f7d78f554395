//! Arguments and wiring.
