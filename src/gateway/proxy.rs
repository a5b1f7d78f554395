//! Forwards admitted requests to the origin and streams the answer back.

/// Placeholder
#[derive(Debug)]
pub struct Proxy;
