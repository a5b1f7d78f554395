//! The in-process engine.
