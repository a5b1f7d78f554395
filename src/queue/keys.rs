//! The names of a room's keys. One hash tag per room keeps a room in one Redis Cluster slot.

use super::RoomName;

/// How many keys a room has.
pub(super) const KEY_COUNT: usize = 9;

/// The room's keys, in the order in which every script of the queue takes the first of them that it needs: line, seen,
/// called, inside, state, notes (on who is called or inside), over (who was ended), roster (who takes part in the draw),
/// nodes (what each gateway reports).
pub fn of_room(room: &RoomName) -> [String; KEY_COUNT] {
    ["line", "seen", "called", "inside", "state", "notes", "over", "roster", "nodes"]
        .map(|part| format!("stanchion:{{{room}}}:{part}"))
}

#[cfg(test)]
mod tests {
    use super::of_room;
    use crate::queue::types::InvalidRoomName;

    #[test]
    fn a_rooms_keys_share_one_hash_tag() -> Result<(), InvalidRoomName> {
        let room = "main".parse()?;
        assert_eq!(
            of_room(&room),
            [
                "stanchion:{main}:line",
                "stanchion:{main}:seen",
                "stanchion:{main}:called",
                "stanchion:{main}:inside",
                "stanchion:{main}:state",
                "stanchion:{main}:notes",
                "stanchion:{main}:over",
                "stanchion:{main}:roster",
                "stanchion:{main}:nodes",
            ]
        );
        Ok(())
    }
}
