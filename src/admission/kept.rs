//! What a node writes down of a room, so that a restart forgets no reset, and publishes nothing else of a draw than before:
//! with the embedded engine nobody else remembers it, and Redis may be lost at the same time.
//!
//! In the data directory, for each room: `room-ROOM.json`, the epoch since the first reset and what is published of a draw so
//! far, written before anybody sees it; and `roster-ROOM-EPOCH.txt`, the roster, written before its digest is published.

use std::{
    io,
    path::{Path, PathBuf},
    sync::PoisonError,
};

use ring::digest;
use serde::{Deserialize, Serialize};
use tokio::{
    fs::{self, File},
    io::AsyncReadExt as _,
};

use super::{LiveRoom, page::Page};
use crate::{
    config::RoomConfig,
    queue::{Draw, Method, RoomName, Schedule, Score, Snapshot, VisitorId, lottery::roster_line},
    tokens::Keyring,
};

/// The epoch, and what is published of its draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) epoch: u64,
    /// The id of the key that tokens were signed with: to a gateway with others, none of them counts.
    key: String,
    opens_at_ms: Option<u64>,
    commitment: Option<String>,
    digest: Option<String>,
    public: Option<String>,
    is_done: bool,
    sealed_since_ms: u64,
    #[serde(default)]
    roster: u64,
    #[serde(default)]
    sealed_until: u64,
}

impl Kept {
    /// What there is to write down of a room; `None` while it was never reset and nothing is published.
    fn of(snapshot: &Snapshot, keyring: &Keyring) -> Option<Self> {
        let draw = snapshot.draw.clone().filter(|draw| draw.commitment.is_some());
        if draw.is_none() && snapshot.epoch <= 1 {
            return None;
        }
        Some(Self::new(snapshot.epoch, keyring.ids().swap_remove(0), snapshot.opens_at_ms, draw.unwrap_or_default()))
    }

    fn new(epoch: u64, key: String, opens_at_ms: Option<u64>, draw: Draw) -> Self {
        Self {
            epoch,
            key,
            opens_at_ms,
            // Before that it changes all the time.
            roster: draw.digest.as_ref().map_or(0, |_| draw.roster),
            commitment: draw.commitment,
            digest: draw.digest,
            public: draw.public,
            is_done: draw.is_done,
            sealed_since_ms: draw.sealed_since_ms,
            sealed_until: draw.sealed_until,
        }
    }

    /// What of it still holds under this schedule: the epoch, and the draw unless that sale was over before this one's
    /// pre-queue began.
    fn under(self, schedule: &Schedule) -> Self {
        let is_over = self.digest.is_some() && self.opens_at_ms <= schedule.prequeue_at_ms;
        if schedule.method == Method::Lottery && !is_over {
            return self;
        }
        Self::new(self.epoch, self.key, None, Draw::default())
    }

    /// The draw as far as it was published.
    pub(super) fn draw(&self) -> Draw {
        Draw {
            commitment: self.commitment.clone(),
            digest: self.digest.clone(),
            public: self.public.clone(),
            is_done: self.is_done,
            sealed_since_ms: self.sealed_since_ms,
            roster: self.roster,
            sealed_until: self.sealed_until,
            ..Draw::default()
        }
    }
}

/// Where it is written down of one room.
#[derive(Debug, Clone)]
pub(super) struct Notes {
    dir: PathBuf,
    room: RoomName,
}

impl Notes {
    /// Those of a room in `data`, with what they say that still holds. A lottery of which nothing can be kept is said loudly.
    pub(super) async fn find(
        config: &RoomConfig,
        data: Option<&Path>,
        keyring: &Keyring,
    ) -> (Option<Self>, Option<Kept>) {
        let (room, schedule) = (&config.name, &config.policy.schedule);
        let Some(dir) = data else {
            if schedule.method == Method::Lottery {
                tracing::warn!(%room, "this lottery's draw is written down nowhere: should the store be lost, restart nothing before it is done");
            }
            return (None, None);
        };
        let notes = Self { dir: dir.to_owned(), room: room.clone() };
        let kept = match fs::create_dir_all(dir).await {
            Ok(()) => notes.read().await,
            Err(error) => Err(error),
        };
        let kept = kept.unwrap_or_else(|error| {
            tell_of_failure(room, &error);
            None
        });
        let kept = kept.filter(|kept| keyring.ids().contains(&kept.key)).map(|kept| kept.under(schedule));
        if let Some(kept) = &kept {
            tracing::info!(%room, epoch = kept.epoch, "goes on from what was written down");
        }
        (Some(notes), kept)
    }

    fn room(&self) -> PathBuf {
        self.dir.join(format!("room-{}.json", self.room))
    }

    fn roster(&self, epoch: u64) -> PathBuf {
        self.dir.join(format!("roster-{}-{epoch}.txt", self.room))
    }

    /// What was written last; `None` when nothing was.
    async fn read(&self) -> io::Result<Option<Kept>> {
        match fs::read(self.room()).await {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes it, whole or not at all, so that it is there after a loss of power too.
    async fn write(&self, kept: &Kept) -> io::Result<()> {
        let mut page = Page::begin(self.room()).await?;
        page.add(serde_json::to_string_pretty(kept)?.as_bytes()).await?;
        page.add(b"\n").await?;
        page.keep().await
    }

    /// The roster that was written down, if it is the one of this digest.
    async fn find_roster(&self, epoch: u64, wanted: &str) -> Option<PathBuf> {
        let path = self.roster(epoch);
        let (mut file, mut context) = (File::open(&path).await.ok()?, digest::Context::new(&digest::SHA256));
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer).await.ok()? {
                0 => break,
                read => context.update(buffer.get(..read)?),
            }
        }
        let found = context.finish().as_ref().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        (found == wanted).then_some(path)
    }
}

fn tell_of_failure(room: &RoomName, error: &io::Error) {
    tracing::error!(
        %room, %error,
        "the room cannot be written down: should the store be lost too, a restart would forget a reset, and publish another draw. \
         Give a data directory that can be written (--data)"
    );
}

impl LiveRoom {
    /// Writes down what is about to be published, if it is news.
    pub(super) async fn write_down(&self, snapshot: &Snapshot) {
        let (Some(notes), Some(kept)) = (&self.notes, Kept::of(snapshot, &self.keyring)) else { return };
        // No lock is held while it is written: two tasks that write the same do no harm.
        if self.noted.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(&kept) {
            return;
        }
        if let Err(error) = notes.write(&kept).await {
            tell_of_failure(self.name(), &error);
        }
        // Also after a failure, which is not to be told four times a second.
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    /// Begins to write the roster down, where that can be done.
    pub(super) async fn begin_roster(&self, epoch: u64) -> RosterPage<'_> {
        let page = match &self.notes {
            Some(notes) => Page::begin(notes.roster(epoch)).await.map(Some),
            None => Ok(None),
        };
        RosterPage { room: self.name(), page: page.unwrap_or_else(|error| failed(self.name(), &error)) }
    }

    /// The roster as it was written down on this node; `None` where it was not.
    pub async fn kept_roster(&self) -> Option<File> {
        let view = self.view().clone();
        let digest = view.snapshot.draw.as_ref()?.digest.as_deref()?;
        let path = self.notes.as_ref()?.find_roster(view.snapshot.epoch, digest).await?;
        File::open(path).await.ok()
    }
}

fn failed(room: &RoomName, error: &io::Error) -> Option<Page> {
    tell_of_failure(room, error);
    None
}

/// A roster that is being written down; or not, which stops no draw.
#[derive(Debug)]
pub(super) struct RosterPage<'a> {
    room: &'a RoomName,
    page: Option<Page>,
}

impl RosterPage<'_> {
    /// Adds a stretch.
    pub(super) async fn add(&mut self, stretch: &[(VisitorId, Score)]) {
        let lines: String = stretch.iter().map(|&(visitor, arrival)| roster_line(visitor, arrival)).collect();
        if let Some(page) = &mut self.page
            && let Err(error) = page.add(lines.as_bytes()).await
        {
            self.page = failed(self.room, &error);
        }
    }

    /// It is whole.
    pub(super) async fn keep(self) {
        if let Some(page) = self.page
            && let Err(error) = page.keep().await
        {
            tell_of_failure(self.room, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{admission::view::tests::snapshot, tokens::SigningKey};

    fn keyring() -> Keyring {
        Keyring::new(SigningKey::from_secret(&[7; 32]).unwrap(), Vec::new())
    }

    fn kept() -> Kept {
        let draw = Draw { commitment: Some("n:c0ffee".to_owned()), digest: Some("d".to_owned()), ..Draw::default() };
        let snapshot = Snapshot { epoch: 3, draw: Some(draw), opens_at_ms: Some(2_000), ..snapshot() };
        Kept::of(&snapshot, &keyring()).unwrap()
    }

    #[test]
    fn of_a_sale_that_was_over_before_the_next_began_only_the_epoch_holds() {
        let lottery = |prequeue_at_ms| Schedule {
            prequeue_at_ms: Some(prequeue_at_ms),
            method: Method::Lottery,
            ..Schedule::default()
        };
        assert_eq!(kept().under(&lottery(1_999)), kept(), "also with an opening that was put off");
        let of_the_next = kept().under(&lottery(2_000));
        assert_eq!((of_the_next.epoch, of_the_next.draw().digest), (3, None));
        let to_draw = Kept { digest: None, ..kept() };
        assert_eq!(to_draw.clone().under(&lottery(2_000)), to_draw, "who came in the pre-queue is to draw");
    }

    #[test]
    fn a_room_that_was_never_reset_and_draws_nothing_needs_no_file() {
        let plain = Snapshot { draw: None, epoch: 1, ..snapshot() };
        assert_eq!(Kept::of(&plain, &keyring()), None);
        assert_eq!(Kept::of(&Snapshot { epoch: 2, ..plain }, &keyring()).unwrap().epoch, 2);
    }

    #[tokio::test]
    async fn what_is_written_is_read_and_a_roster_found_by_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let notes = Notes { dir: dir.path().to_owned(), room: "main".parse().unwrap() };
        assert_eq!(notes.read().await.unwrap(), None);
        for kept in [kept(), Kept { is_done: true, ..kept() }] {
            notes.write(&kept).await.unwrap();
            assert_eq!(notes.read().await.unwrap(), Some(kept));
        }
        let mut page = Page::begin(notes.roster(1)).await.unwrap();
        page.add(b"abc").await.unwrap();
        page.keep().await.unwrap();
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(notes.find_roster(1, digest).await, Some(dir.path().join("roster-main-1.txt")));
        assert_eq!((notes.find_roster(1, "0").await, notes.find_roster(2, digest).await), (None, None));
        drop(Page::begin(notes.roster(2)).await.unwrap());
        let files = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files, 2, "no drafts are left");
        std::fs::write(notes.room(), "half").unwrap();
        assert!(notes.read().await.is_err());
    }
}
