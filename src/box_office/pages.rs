//! The pages a person buys with.
