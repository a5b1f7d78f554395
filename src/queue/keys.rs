//! The names of a room's keys. One hash tag per room keeps a room in one Redis Cluster slot.
