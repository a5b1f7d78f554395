//! The queue's scripts as files: each is the shared part and its own.
//!
//! When Redis is at its memory limit it refuses a script at its first write that could take memory, so none is left
//! half-done. Only a join may be refused: everything else frees memory, or moves a visitor from one set to another, and
//! must go on, or the line would stand still and those in it lose their places as absent.

use crate::store::Script;

macro_rules! script {
    ($file:literal) => {
        script!($file, "#!lua flags=allow-oom\n")
    };
    ($file:literal, $flags:literal) => {{
        const SOURCE: &str =
            concat!($flags, include_str!("../../lua/queue.lua"), include_str!(concat!("../../lua/", $file)));
        Script::new($file, SOURCE)
    }};
}

pub(super) static CONFIGURE: Script = script!("configure-7.lua");
pub(super) static MODE: Script = script!("mode-6.lua");
pub(super) static JOIN: Script = script!("join-7.lua", "");
pub(super) static CALL: Script = script!("call-6.lua");
pub(super) static CLAIM: Script = script!("claim-7.lua");
pub(super) static RENEW: Script = script!("renew-6.lua");
pub(super) static RELEASE: Script = script!("release-6.lua");
pub(super) static LEAVE: Script = script!("leave-7.lua");
pub(super) static SEEN: Script = script!("seen-7.lua");
pub(super) static SWEEP: Script = script!("sweep-6.lua");
pub(super) static SNAPSHOT: Script = script!("snapshot-7.lua");
pub(super) static RESET: Script = script!("reset-8.lua");
pub(super) static SEAL: Script = script!("seal-7.lua");
pub(super) static ROSTER: Script = script!("roster-7.lua");
pub(super) static DRAW: Script = script!("draw-7.lua");
pub(super) static REPORT: Script = script!("report-8.lua");
pub(super) static DECIDE: Script = script!("decide-5.lua");
pub(super) static SKETCH: Script = script!("sketch-5.lua");
