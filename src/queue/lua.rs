//! The queue's scripts as files: each is what it shares with others, and its own. Whatever a script brings along is set up
//! anew by each run, so it brings only what it needs.
//!
//! When Redis is at its memory limit it refuses a script at its first write that could take memory, so none is left
//! half-done. Only a join may be refused: everything else frees memory, or moves a visitor from one set to another, and
//! must go on, or the line would stand still and those in it lose their places as absent.

use crate::store::Script;

/// What scripts share: `room` all of them, `slots` those that deal with who is called or inside, `places` those that tell
/// visitors their places. Each needs the one before.
macro_rules! shared {
    (room) => {
        include_str!("../../lua/queue.lua")
    };
    (slots) => {
        concat!(shared!(room), include_str!("../../lua/queue_slots.lua"))
    };
    (places) => {
        concat!(shared!(slots), include_str!("../../lua/queue_places.lua"))
    };
}

macro_rules! script {
    ($shared:ident, $file:literal) => {
        script!($shared, $file, "#!lua flags=allow-oom\n")
    };
    ($shared:ident, $file:literal, $flags:literal) => {{
        const SOURCE: &str = concat!($flags, shared!($shared), include_str!(concat!("../../lua/", $file)));
        Script::new($file, SOURCE)
    }};
}

pub(super) static CONFIGURE: Script = script!(room, "configure-8.lua");
pub(super) static MODE: Script = script!(room, "mode-5.lua");
pub(super) static JOIN: Script = script!(places, "join-8.lua", "");
pub(super) static CALL: Script = script!(slots, "call-7.lua");
pub(super) static CLAIM: Script = script!(places, "claim-8.lua");
pub(super) static RENEW: Script = script!(places, "renew-7.lua");
pub(super) static RELEASE: Script = script!(slots, "release-7.lua");
pub(super) static LEAVE: Script = script!(places, "leave-8.lua");
pub(super) static END: Script = script!(places, "end-8.lua");
pub(super) static SEEN: Script = script!(places, "seen-8.lua");
pub(super) static SWEEP: Script = script!(slots, "sweep-7.lua");
pub(super) static SNAPSHOT: Script = script!(room, "snapshot-8.lua");
pub(super) static RESET: Script = script!(room, "reset-9.lua");
pub(super) static SEAL: Script = script!(room, "seal-8.lua");
pub(super) static ROSTER: Script = script!(room, "roster-8.lua");
pub(super) static DRAW: Script = script!(room, "draw-8.lua");
pub(super) static REPORT: Script = script!(room, "report-9.lua");
pub(super) static DECIDE: Script = script!(room, "decide-5.lua");
pub(super) static SKETCH: Script = script!(room, "sketch-5.lua");
