//! A payment provider to test against.
