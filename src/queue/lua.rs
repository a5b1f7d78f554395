//! The queue's scripts as files: each is the shared part and its own.

use crate::store::Script;

macro_rules! script {
    ($file:literal) => {
        Script::new($file, concat!(include_str!("../../lua/queue.lua"), include_str!(concat!("../../lua/", $file))))
    };
}

pub(super) static CONFIGURE: Script = script!("configure-5.lua");
pub(super) static MODE: Script = script!("mode-5.lua");
pub(super) static JOIN: Script = script!("join-5.lua");
pub(super) static CALL: Script = script!("call-5.lua");
pub(super) static CLAIM: Script = script!("claim-5.lua");
pub(super) static RENEW: Script = script!("renew-5.lua");
pub(super) static RELEASE: Script = script!("release-5.lua");
pub(super) static LEAVE: Script = script!("leave-5.lua");
pub(super) static SEEN: Script = script!("seen-5.lua");
pub(super) static SWEEP: Script = script!("sweep-5.lua");
pub(super) static SNAPSHOT: Script = script!("snapshot-5.lua");
pub(super) static SKETCH: Script = script!("sketch-5.lua");
