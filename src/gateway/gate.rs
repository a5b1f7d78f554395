//! Who may pass: the five steps a request goes through.
//!
//! 1. A bypass rule sends it to the origin, uncounted; and so does a route whose answers are kept for everybody.
//! 2. So does a live session, which is verified here; only its renewal, once per half life, asks the store.
//! 3. A called visitor's queue token is exchanged for a session, and the request goes on.
//! 4. A newcomer goes straight in when nobody waits and a slot is free.
//! 5. Anyone else joins, and is shown the waiting page or its JSON twin.

pub mod commands;
pub mod intent;
pub mod path;
pub mod routes;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderValue, Method, request, response};

use self::{
    commands::Commands,
    intent::{Intent, Reach},
    path::Path,
};
use super::{
    Gatekeeper, GatewayError, Passage, Peer, Route, Sharing, Verdict, cache, cookies, identity,
    identity::Identity,
    parallel::{Parallel, Share},
    queued,
};
use crate::{
    admission::{LiveRoom, Rooms, Standing, sessions::Renewal, signals::Exchange},
    tokens::Claims,
};

/// Decides about every request to the rooms' origins.
#[derive(Debug, Clone)]
pub struct Gate {
    rooms: Rooms,
    prefix: String,
    parallel: Parallel,
}

/// What the gate remembers of a request while the origin answers it.
#[derive(Debug)]
pub struct Memo {
    room: Arc<LiveRoom>,
    session: Option<Claims>,
    peer: Peer,
    /// Measures an admitted visitor's request. What comes past the room is not measured: anybody could send it, and how
    /// fast assets are served says little.
    exchange: Option<Exchange>,
}

impl Gate {
    /// A gate before `rooms`; `prefix` is where the visitor endpoints live, such as `/__room`.
    pub fn new(rooms: Rooms, prefix: &str) -> Self {
        Self { rooms, prefix: prefix.to_owned(), parallel: Parallel::default() }
    }

    async fn admit(&self, room: Arc<LiveRoom>, head: &request::Parts, path: &Path, peer: Peer) -> Verdict<Memo> {
        let Identity { session, queue, is_bearer_ours } = identity::identify(&room, &head.headers);
        let most = room.config().max_parallel;
        if let Some(held) = session {
            // Before the renewal, whose cookie a refusal would lose.
            let share = match self.parallel.enter(held.sub, most).await {
                Ok(share) => share,
                Err(error) => return Verdict::Refuse(error),
            };
            if let Some(session) = room.touch(held.clone()).await {
                let renewed = (session != held).then(|| cookies::session(&room, &session, peer)).flatten();
                let cookies = renewed.into_iter().collect();
                return admitted(room, session, is_bearer_ours, cookies, share, peer);
            }
        }
        let intent = Intent::of(head, path);
        let turn = match intent.reach {
            Reach::Peek => room.peek(queue),
            Reach::LookUp => room.look_up(queue).await,
            Reach::Join { may_enter } => room.come(queue, may_enter).await,
        };
        if let Standing::Admitted(session) = &turn.standing {
            let session = (**session).clone();
            // A refusal loses no session: the queue token, or whoever was first, still has it.
            return match self.parallel.enter(session.sub, most).await {
                Ok(share) => {
                    let cookies = cookies::of_turn(&room, &turn, peer);
                    admitted(room, session, is_bearer_ours, cookies, share, peer)
                }
                Err(error) => Verdict::Refuse(error),
            };
        }
        let asked = queued::Asked {
            format: intent.format,
            to: &queued::target::of_request(head),
            was_submitted: !matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS),
            peer,
            prefix: &self.prefix,
        };
        Verdict::Answer(queued::response(&room, &turn, &asked))
    }
}

impl Gatekeeper for Gate {
    type Memo = Memo;

    async fn decide(&self, head: &request::Parts, peer: Peer) -> Verdict<Memo> {
        let Ok(path) = Path::read(head.uri.path()) else {
            return Verdict::Refuse(GatewayError::BadRequest("the path can be read in two ways"));
        };
        let Some(found) = routes::find(&self.rooms, &head.headers, &path) else {
            return Verdict::Refuse(GatewayError::Misdirected);
        };
        let room = found.room;
        let sharing = if room.config().cache.is_empty() { None } else { routes::sharing(room.config(), &path) };
        if sharing == Some(Sharing::Everyone) && cache::is_shareable(head) {
            let mut passage = passage(room, None, false, Vec::new(), None, peer);
            passage.route.sharing = sharing;
            return Verdict::Forward(passage);
        }
        let mut verdict = if !found.is_guarded || routes::is_bypassed(room.config(), head, &path, peer) {
            // Uncounted, but a session that is there is told to the origin, and what it says about it is acted on.
            let Identity { session, is_bearer_ours, .. } = identity::identify(&room, &head.headers);
            Verdict::Forward(passage(room, session, is_bearer_ours, Vec::new(), None, peer))
        } else {
            self.admit(room, head, &path, peer).await
        };
        if let Verdict::Forward(passage) = &mut verdict {
            passage.route.sharing = sharing;
        }
        verdict
    }

    async fn after_origin(&self, passage: &mut Passage<Memo>, head: &mut response::Parts) {
        let commands = Commands::take(&mut head.headers);
        let Memo { room, session, peer, exchange } = &mut passage.memo;
        if let Some(exchange) = exchange.take() {
            exchange.answered(head.status, Instant::now());
        }
        if let Some(more) = commands.can_take {
            room.can_take(more);
        }
        if commands.is_sold_out {
            room.sold_out();
        }
        let Some(session) = session else { return };
        if commands.is_release {
            room.release(session);
            passage.set_cookies = cookies::clear(room, *peer).collect();
        } else if let Some(seconds) = commands.pin_seconds
            && let Renewal::Kept(pinned) = room.renew(session, Duration::from_secs(seconds)).await
            && pinned != *session
        {
            // Comes after the renewal that the request itself may have brought about, so that the browser keeps this.
            passage.set_cookies.extend(cookies::session(room, &pinned, *peer));
            *session = pinned;
        }
    }

    fn origin_failed(&self, passage: &mut Passage<Memo>, error: GatewayError) {
        if let Some(exchange) = passage.memo.exchange.take()
            && error.is_of_origin()
        {
            exchange.failed();
        }
    }
}

fn admitted(
    room: Arc<LiveRoom>,
    session: Claims,
    drop_authorization: bool,
    set_cookies: Vec<HeaderValue>,
    share: Option<Share>,
    peer: Peer,
) -> Verdict<Memo> {
    let exchange = room.start_exchange();
    let mut passage = passage(room, Some(session), drop_authorization, set_cookies, share, peer);
    passage.memo.exchange = Some(exchange);
    Verdict::Forward(passage)
}

fn passage(
    room: Arc<LiveRoom>,
    session: Option<Claims>,
    drop_authorization: bool,
    set_cookies: Vec<HeaderValue>,
    share: Option<Share>,
    peer: Peer,
) -> Passage<Memo> {
    let route = Route {
        room: room.name().clone(),
        visitor: session.as_ref().map(|session| session.sub),
        session_expires: session.as_ref().map(|session| session.exp),
        drop_authorization,
        sharing: None,
    };
    Passage { route, set_cookies, share, memo: Memo { room, session, peer, exchange: None } }
}
