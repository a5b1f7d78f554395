//! The public listener: every request of the shop's visitors passes here.

pub mod gate;
pub mod proxy;
