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

pub(super) static CONFIGURE: Script = script!("configure-5.lua");
pub(super) static MODE: Script = script!("mode-5.lua");
pub(super) static JOIN: Script = script!("join-5.lua", "");
pub(super) static CALL: Script = script!("call-5.lua");
pub(super) static CLAIM: Script = script!("claim-5.lua");
pub(super) static RENEW: Script = script!("renew-5.lua");
pub(super) static RELEASE: Script = script!("release-5.lua");
pub(super) static LEAVE: Script = script!("leave-5.lua");
pub(super) static SEEN: Script = script!("seen-5.lua");
pub(super) static SWEEP: Script = script!("sweep-5.lua");
pub(super) static SNAPSHOT: Script = script!("snapshot-5.lua");
