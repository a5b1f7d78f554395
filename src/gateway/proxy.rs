//! Forwards admitted requests to the origin and streams the answer back.
