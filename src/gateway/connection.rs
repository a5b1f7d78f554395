//! What the requests and tunnels of one visitor's connection have to know of it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Peer, answer_body::Answers, crowd::Place};
use crate::shutdown::Shutdown;

/// How everything that runs on behalf of connections ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Closing {
    /// Finish what you do, begin nothing new.
    pub(super) soft: Shutdown,
    /// Stop now.
    pub(super) hard: CancellationToken,
    /// Every connection and tunnel, so that `serve` can wait for them.
    pub(super) tasks: TaskTracker,
}

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// The other end; behind a PROXY header, the client that it names.
    pub(super) peer: Peer,
    /// Whether it may speak for others.
    pub(super) is_trusted: bool,
    pub(super) closing: Closing,
    /// The number of the core that serves it.
    pub(super) core: usize,
    /// Counts the connection for as long as anything of it lives.
    pub(super) place: Place,
    /// Those of HTTP/2.
    pub(super) answers: Answers,
    requests: AtomicU64,
    requests_at_last_look: AtomicU64,
    in_progress: AtomicUsize,
    /// Bytes of an answer have still to leave.
    unflushed: AtomicBool,
    /// A head has begun and is not complete.
    amid_head: AtomicBool,
    /// What came is not read any further.
    refused: AtomicBool,
    upgraded: AtomicBool,
    reset: AtomicBool,
}

/// What a connection has been doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// No complete request head yet.
    Silent,
    /// Nothing since the last look.
    Idle,
    /// Something.
    Busy,
}

impl Connection {
    pub(super) fn new(peer: Peer, is_trusted: bool, closing: Closing, core: usize, place: Place) -> Self {
        Self {
            peer,
            is_trusted,
            closing,
            core,
            place,
            answers: Answers::default(),
            requests: AtomicU64::new(0),
            requests_at_last_look: AtomicU64::new(0),
            in_progress: AtomicUsize::new(0),
            unflushed: AtomicBool::new(false),
            amid_head: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            upgraded: AtomicBool::new(false),
            reset: AtomicBool::new(false),
        }
    }

    /// Counts a request that is answered already.
    pub(super) fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request until the value is dropped: with the end of its answer, or of its body if that comes later.
    pub(super) fn begin(self: &Arc<Self>) -> InProgress {
        self.count();
        self.hold()
    }

    /// Keeps the connection from being taken for an idle one until the value is dropped.
    pub(super) fn hold(self: &Arc<Self>) -> InProgress {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        InProgress(Arc::clone(self))
    }

    /// What it did since the last call.
    pub(super) fn activity(&self) -> Activity {
        let requests = self.requests.load(Ordering::Relaxed);
        let before = self.requests_at_last_look.swap(requests, Ordering::Relaxed);
        match requests {
            0 => Activity::Silent,
            _ if requests == before && !self.is_answering() => Activity::Idle,
            _ => Activity::Busy,
        }
    }

    /// Whether any request is under way.
    pub(super) fn is_answering(&self) -> bool {
        self.in_progress.load(Ordering::Relaxed) > 0
    }

    /// Whether nothing is half done: every answer has left in full, and of the next request nothing has come.
    pub(super) fn is_settled(&self) -> bool {
        self.has_answered() && !self.amid_head.load(Ordering::Relaxed)
    }

    /// Whether every answer has left in full.
    pub(super) fn has_answered(&self) -> bool {
        !self.is_answering() && !self.unflushed.load(Ordering::Relaxed)
    }

    pub(super) fn set_unflushed(&self, unflushed: bool) {
        self.unflushed.store(unflushed, Ordering::Relaxed);
    }

    pub(super) fn set_amid_head(&self, amid: bool) {
        self.amid_head.store(amid, Ordering::Relaxed);
    }

    pub(super) fn set_refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// The connection speaks another protocol now.
    pub(super) fn set_upgraded(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Ends the connection with a reset rather than a close: the only way to tell an HTTP/1.0 client, for whom a
    /// close is the end of the body, that the body was cut short.
    pub(super) fn set_reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_reset(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
    }
}

/// One request being answered.
#[derive(Debug)]
pub(super) struct InProgress(Arc<Connection>);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}
