//! The inventory's scripts, and how their replies are read.

use crate::store::{Script, StoreError, Value};

/// What stands in front of a script.
macro_rules! head {
    (holds) => {
        include_str!("../../../lua/holds.lua")
    };
    (nothing) => {
        ""
    };
    // Redis runs it even when it has no memory left.
    (allow_oom) => {
        "#!lua flags=allow-oom\n"
    };
}

macro_rules! scripts {
    ($head:ident; $($name:ident = $file:literal;)*) => {
        $(pub static $name: Script = Script::new($file, concat!(head!($head), include_str!(concat!("../../../lua/", $file))));)*
    };
}

// These need memory: when Redis has none left it refuses them, at their first write.
scripts! { holds;
    HOLD_SEATS = "hold_seats-n.lua";
    HOLD_TICKETS = "hold_tickets-4.lua";
    HOLD_BEST = "hold_best-n.lua";
}
scripts! { nothing;
    OPEN_EVENT = "open_event-1.lua";
    REHOLD = "rehold-n.lua";
}

// These finish what holds began, and that must go on.
scripts! { allow_oom;
    FIND_HOLD = "find_hold-1.lua";
    PAY_HOLD = "pay_hold-n.lua";
    RELEASE_HOLD = "release_hold-n.lua";
    SELL = "sell-n.lua";
    SWEEP_HOLDS = "sweep_holds-4.lua";
    VIEW_SEATS = "view_seats-n.lua";
    LIST_HOLDERS = "list_holders-n.lua";
    SCAN_HASH = "scan_hash-1.lua";
    COUNT_TICKETS = "count_tickets-1.lua";
    CORRECT_TICKETS = "correct_tickets-1.lua";
    TAKE_LEASE = "take_lease-1.lua";
    GIVE_LOCK = "give_lock-1.lua";
    FORGET_SALE = "forget_sale-n.lua";
    ERASE = "erase-n.lua";
}

/// A reply that the script's header does not promise.
pub fn unexpected(script: &'static Script, reply: &Value) -> StoreError {
    StoreError::Script { script: script.file(), message: format!("unexpected reply {reply:?}") }
}

/// A reply that is one whole number.
pub fn int(script: &'static Script, reply: &Value) -> Result<i64, StoreError> {
    match reply {
        Value::Int(number) => Ok(*number),
        other => Err(unexpected(script, other)),
    }
}

/// A reply that is a list of whole numbers, at least one.
pub fn ints(script: &'static Script, reply: &Value) -> Result<(i64, Vec<i64>), StoreError> {
    let Value::Array(items) = reply else { return Err(unexpected(script, reply)) };
    let numbers: Result<Vec<i64>, StoreError> = items.iter().map(|item| int(script, item)).collect();
    match numbers?.split_first() {
        Some((first, rest)) => Ok((*first, rest.to_vec())),
        None => Err(unexpected(script, reply)),
    }
}
