//! The background tasks that admit visitors of a room.
