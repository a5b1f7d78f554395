//! The gateway's two cookies, read from raw bytes and written.

use http::{HeaderMap, HeaderValue, header::COOKIE};

use super::Peer;
use crate::{
    admission::{LiveRoom, Standing, Turn},
    queue::RoomName,
    tokens::Claims,
};

const QUEUE: &str = "stanchion_q_";
const SESSION: &str = "stanchion_s_";

/// Name of the cookie that holds the queue token.
pub fn queue_name(room: &RoomName) -> String {
    format!("{QUEUE}{room}")
}

/// Name of the cookie that holds the session token.
pub fn session_name(room: &RoomName) -> String {
    format!("{SESSION}{room}")
}

/// Every queue token given for `room`.
pub fn queue_values<'a>(headers: &'a HeaderMap, room: &'a RoomName) -> impl Iterator<Item = &'a str> {
    values(headers, [QUEUE, room.as_str()])
}

/// Every session token given for `room`.
pub fn session_values<'a>(headers: &'a HeaderMap, room: &'a RoomName) -> impl Iterator<Item = &'a str> {
    values(headers, [SESSION, room.as_str()])
}

/// Every value given for the name that these parts make, over all `Cookie` lines. Works on bytes, so that another cookie's junk hides nothing.
fn values<'a>(headers: &'a HeaderMap, [kind, room]: [&'a str; 2]) -> impl Iterator<Item = &'a str> {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let value = pair
            .trim_ascii_start()
            .strip_prefix(kind.as_bytes())?
            .strip_prefix(room.as_bytes())?
            .trim_ascii_start()
            .strip_prefix(b"=")?;
        let value = value.trim_ascii();
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        str::from_utf8(value).ok()
    })
}

/// The `Set-Cookie` lines that a turn brings. Whoever is let in has no more use for the queue token: when the session
/// ends they come anew, and straight in if nobody waits.
pub fn of_turn(room: &LiveRoom, turn: &Turn, peer: Peer) -> Vec<HeaderValue> {
    let queue = queue_name(room.name());
    let (new, served) = match &turn.standing {
        _ if !turn.is_new => (None, None),
        Standing::Admitted(claims) => {
            (session(room, claims, peer), turn.queue.as_ref().and_then(|_| line(room, &queue, "", 0, peer)))
        }
        _ => (turn.queue.as_ref().and_then(|claims| set(room, &queue, claims, peer)), None),
    };
    new.into_iter().chain(served).collect()
}

/// `Set-Cookie` for a session token.
pub fn session(room: &LiveRoom, claims: &Claims, peer: Peer) -> Option<HeaderValue> {
    set(room, &session_name(room.name()), claims, peer)
}

/// The `Set-Cookie` lines that remove both cookies.
pub fn clear(room: &LiveRoom, peer: Peer) -> impl Iterator<Item = HeaderValue> {
    [queue_name(room.name()), session_name(room.name())]
        .into_iter()
        .filter_map(move |name| line(room, &name, "", 0, peer))
}

fn set(room: &LiveRoom, name: &str, claims: &Claims, peer: Peer) -> Option<HeaderValue> {
    let lives = claims.exp.saturating_sub(room.now_ms() / 1_000);
    line(room, name, &room.keyring().mint(claims), lives, peer)
}

/// `None` only for a configured domain that no header can hold.
fn line(room: &LiveRoom, name: &str, value: &str, max_age: u64, peer: Peer) -> Option<HeaderValue> {
    let domain = room.config().cookie_domain.as_ref().map_or(String::new(), |domain| format!("; Domain={domain}"));
    let secure = if peer.tls { "; Secure" } else { "" };
    let line = format!("{name}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}{domain}");
    HeaderValue::try_from(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_beside_ours_hides_nothing() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_bytes(b"junk=\xff; ours=1;x; ours = \"2\" ;oursandmore=3").unwrap());
        headers.append(COOKIE, HeaderValue::from_bytes(b"ours=\xff; ours=4").unwrap());
        assert_eq!(values(&headers, ["our", "s"]).collect::<Vec<_>>(), ["1", "2", "4"]);
    }
}
