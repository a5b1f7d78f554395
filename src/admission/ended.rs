//! Whose place or session ended before its token does: refused on this node at once, told to the store, told again when the store
//! was away or lost it, and written down so that a restart forgets none of them.
//!
//! In the data directory, for each room: `ended-ROOM.txt`, a line for each: when, in microseconds by the store's clock, and who.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    fs::{self, OpenOptions},
    io::AsyncWriteExt as _,
};

use super::{
    LiveRoom,
    live_room::MOST_RELEASED,
    page::Page,
    sessions::{admitted_ms, millis},
};
use crate::{
    queue::{QueueError, RoomName, VisitorId, scripts::BATCH},
    tokens::Claims,
};

/// Where one room's ended visitors are written down.
#[derive(Debug)]
pub(super) struct Ends {
    path: PathBuf,
    /// About how many lines the file has.
    lines: AtomicUsize,
}

impl Ends {
    /// Those of a room in `dir`.
    pub(super) fn new(dir: &Path, room: &RoomName) -> Self {
        Self { path: dir.join(format!("ended-{room}.txt")), lines: AtomicUsize::new(0) }
    }

    /// Everybody written down. What a loss of power left half-written is passed over.
    async fn read(&self) -> io::Result<Vec<(VisitorId, u64)>> {
        let text = match fs::read_to_string(&self.path).await {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let read = |line: &str| {
            let (at_us, visitor) = line.split_once(' ')?;
            Some((visitor.parse().ok()?, at_us.parse().ok()?))
        };
        Ok(text.lines().filter_map(read).collect())
    }

    /// Adds these. The file is opened anew, because gateways may share it and each may write it anew.
    async fn add(&self, ended: &[(VisitorId, u64)]) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).await?;
        file.write_all(lines(ended).as_bytes()).await?;
        file.flush().await?;
        self.lines.fetch_add(ended.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Writes it anew with these alone.
    async fn write(&self, ended: &[(VisitorId, u64)]) -> io::Result<()> {
        let mut page = Page::begin(self.path.clone()).await?;
        page.add(lines(ended).as_bytes()).await?;
        page.keep().await?;
        self.lines.store(ended.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Whether it grew so long that it holds more of the past than of the present.
    fn is_full(&self) -> bool {
        self.lines.load(Ordering::Relaxed) >= 2 * MOST_RELEASED
    }
}

fn lines(ended: &[(VisitorId, u64)]) -> String {
    ended.iter().fold(String::new(), |lines, (visitor, at_us)| lines + &format!("{at_us} {visitor}\n"))
}

impl LiveRoom {
    /// Whether a session whose token is genuine still counts on this node.
    pub fn is_live(&self, session: &Claims) -> bool {
        !self.has_ended(session.sub, admitted_ms(session))
    }

    /// Takes in whose place or session somebody ended, on whatever node: their tokens are refused here too. What they were
    /// granted after that is another session. The same news may come again.
    pub fn sessions_ended(&self, ended: &[(VisitorId, u64)]) {
        for &(visitor, at_us) in ended {
            let ended_ms = at_us / 1_000;
            self.released.insert_since(visitor, self.counts_until_ms(ended_ms), ended_ms, ended_ms);
        }
    }

    /// Whether the session that `visitor` was granted at `admitted_ms` ended before its token does.
    pub(super) fn has_ended(&self, visitor: VisitorId, admitted_ms: u64) -> bool {
        self.released.since(visitor, self.now_ms()).is_some_and(|ended_ms| admitted_ms <= ended_ms)
    }

    /// Ends the session: at once on this node, with the store in the background.
    pub fn release(self: &Arc<Self>, session: &Claims) {
        // Whatever does not fit into memory is still told to the store.
        if !self.forget(session) && !self.is_live(session) {
            return;
        }
        let (room, session) = (Arc::clone(self), session.clone());
        self.beside(async move {
            if let Err(error) = room.queue.release(session.sub).await {
                room.store_failed(&error);
                room.tell_later(session.sub, room.now_ms().max(admitted_ms(&session)));
            }
        });
    }

    /// Gives up place and session. With the store away both end on this node, and with the store when it is back.
    pub async fn leave(&self, visitor: VisitorId, session: Option<&Claims>) {
        if let Some(session) = session {
            self.forget(session);
        }
        match self.queue.leave(visitor).await {
            Ok(_) => self.has_no_place(visitor, self.now_ms()),
            Err(error) => {
                self.store_failed(&error);
                self.tell_later(visitor, session.map_or(0, admitted_ms).max(self.now_ms()));
            }
        }
    }

    /// Takes away place and session: at once on this node, on every other with its next look at the store.
    pub async fn revoke(&self, visitor: VisitorId) -> Result<bool, QueueError> {
        let was_known = self.queue.revoke(visitor).await?;
        let now_ms = self.now_ms();
        self.released.insert_since(visitor, self.counts_until_ms(now_ms), now_ms, now_ms);
        self.has_no_place(visitor, now_ms);
        Ok(was_known)
    }

    /// Refuses the session's token on this node from now on. Returns whether that is news.
    pub(super) fn forget(&self, session: &Claims) -> bool {
        let ends_ms = session.exp.saturating_mul(1_000);
        let admitted_ms = admitted_ms(session);
        self.released.insert_since(session.sub, ends_ms, self.now_ms().max(admitted_ms), admitted_ms)
    }

    fn tell_later(&self, visitor: VisitorId, ended_ms: u64) {
        self.untold.insert_since(visitor, self.counts_until_ms(ended_ms), ended_ms, ended_ms);
    }

    /// The store has another history, perhaps of before they ended.
    pub(super) fn tell_again_who_ended(&self) {
        for (visitor, ended_ms) in self.released.all(self.now_ms()) {
            self.tell_later(visitor, ended_ms);
        }
    }

    /// Tells the store what it was not there to hear, or lost.
    pub(super) async fn tell_who_ended(&self) -> Result<(), QueueError> {
        let untold = self.untold.take(self.now_ms());
        let mut batches = untold.chunks(BATCH);
        while let Some(batch) = batches.next() {
            // To the end of the millisecond: nobody who ended in it came back in it.
            let ended: Vec<_> = batch.iter().map(|&(visitor, at_ms)| (visitor, at_ms * 1_000 + 999)).collect();
            match self.queue.end(&ended).await {
                Ok(_) => tokio::task::yield_now().await,
                // After a reset nothing of them is left.
                Err(QueueError::OtherEpoch(_)) => return Ok(()),
                Err(error) => {
                    for &(visitor, ended_ms) in batch.iter().chain(batches.flatten()) {
                        self.tell_later(visitor, ended_ms);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Writes down who was ended since the last look.
    pub(super) async fn write_down_ended(&self, news: &[(VisitorId, u64)]) {
        let Some(ends) = self.ends.as_ref().filter(|_| !news.is_empty()) else { return };
        let written = if ends.is_full() { ends.write(&self.all_ended()).await } else { ends.add(news).await };
        if let Err(error) = written {
            self.cannot_keep_ends(&error);
        }
    }

    /// Who was ended before this node started.
    pub(super) async fn remember_who_was_ended(&self) {
        let Some(ends) = &self.ends else { return };
        let kept = match ends.read().await {
            Ok(ended) if ended.is_empty() => return,
            Ok(ended) => {
                self.sessions_ended(&ended);
                self.tell_again_who_ended();
                ends.write(&self.all_ended()).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            self.cannot_keep_ends(&error);
        }
    }

    fn all_ended(&self) -> Vec<(VisitorId, u64)> {
        self.released.all(self.now_ms()).into_iter().map(|(visitor, at_ms)| (visitor, at_ms * 1_000)).collect()
    }

    fn cannot_keep_ends(&self, error: &io::Error) {
        tracing::error!(
            room = %self.name(), %error,
            "who left or was released cannot be written down: should the store be lost too, a restart would forget it. Give a \
             data directory that can be written (--data)"
        );
    }

    /// Until when a token may be good of what ended then.
    fn counts_until_ms(&self, ended_ms: u64) -> u64 {
        ended_ms.saturating_add(millis(self.config.session_cap.max(self.config.policy.grace)))
    }
}
