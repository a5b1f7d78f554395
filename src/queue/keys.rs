//! The names of a room's keys. One hash tag per room keeps a room in one Redis Cluster slot.

use super::RoomName;

/// How many keys every script of the queue takes.
pub(super) const KEY_COUNT: usize = 5;

/// The room's keys, in the order in which every script of the queue takes them: line, seen, called, inside, state.
pub fn of_room(room: &RoomName) -> [String; KEY_COUNT] {
    ["line", "seen", "called", "inside", "state"].map(|part| format!("stanchion:{{{room}}}:{part}"))
}

#[cfg(test)]
mod tests {
    use super::of_room;
    use crate::queue::types::InvalidRoomName;

    #[test]
    fn a_room_has_five_keys_with_one_hash_tag() -> Result<(), InvalidRoomName> {
        let room = "main".parse()?;
        assert_eq!(
            of_room(&room),
            [
                "stanchion:{main}:line",
                "stanchion:{main}:seen",
                "stanchion:{main}:called",
                "stanchion:{main}:inside",
                "stanchion:{main}:state",
            ]
        );
        Ok(())
    }
}
