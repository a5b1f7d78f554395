//! The private listener: health, rooms, audit.
