//! One person from the first click to the end: arrives, waits, and goes in to buy.

use std::{
    sync::{Arc, Mutex, OnceLock, atomic::Ordering},
    time::Duration,
};

use http::header;
use rand::RngExt as _;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    buyer::Shopping,
    client::{Answer, Ask, NoAnswer, Tab, Target},
    line::InLine,
    now_ms,
    personality::{self, Dice, Personality, between},
    plan::{Plan, RehearseError},
    record::{Outcome, Person, Record},
    tabs,
    tally::{Counted, Kind, Tally},
};

/// What every visitor shares.
#[derive(Debug)]
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) target: Arc<Target>,
    pub(super) tally: Arc<Tally>,
    /// The instant the first may come.
    pub(super) start: Instant,
    /// The rehearsal gives up.
    pub(super) stop: CancellationToken,
    /// Why it gave up, when that is not the deadline.
    pub(super) hopeless: OnceLock<RehearseError>,
}

/// One tab of one person, and what it may decide.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) world: Arc<World>,
    pub(super) tab: Tab,
    pub(super) dice: Dice,
    pub(super) personality: Personality,
    /// Some tab of this person got in, or all is over: nobody needs to wait any longer.
    pub(super) served: CancellationToken,
}

/// What a page turned out to be.
#[derive(Debug)]
pub(super) enum Page {
    /// The shop, at this path.
    Shop(String),
    /// The waiting room.
    Queued,
    /// Neither.
    Odd,
}

/// A visit goes round again at most this often: sessions run out, but not without end.
const MOST_RETURNS: u32 = 50;
/// Pages opened in vain before somebody gives up.
const MOST_PAGES: u32 = 10;

/// Plays person `number` and returns what they lived through, also when the rehearsal gives up on them.
pub(super) async fn play(world: Arc<World>, number: u32) -> Record {
    let mut dice = personality::dice(world.plan.seed, u64::from(number));
    let personality = Personality::draw(world.plan.mix, &mut dice);
    let comes = world.start + between(&mut dice, Duration::ZERO, world.plan.arrivals.span());
    let person = Arc::new(Mutex::new(Person::new(&world.plan.room, personality)));
    let tab = Tab::new(Arc::clone(&world.target), Arc::clone(&world.tally), Arc::clone(&person));
    let served = CancellationToken::new();
    let mut visitor = Visitor { world: Arc::clone(&world), tab, dice, personality, served };

    let outcome = tokio::select! {
        biased;
        () = world.stop.cancelled() => Outcome::Unfinished,
        outcome = async {
            sleep_until(comes).await;
            visitor.visit().await
        } => outcome,
    };
    visitor.served.cancel();
    if outcome != Outcome::Bought {
        world.tally.gone.fetch_add(1, Ordering::Relaxed);
    }
    let mut record = std::mem::take(&mut visitor.tab.person().record);
    record.outcome = outcome;
    record
}

impl Visitor {
    async fn visit(&mut self) -> Outcome {
        self.world.tally.arrived.fetch_add(1, Ordering::Relaxed);
        let mut page = self.world.plan.page();
        loop {
            let path = match self.get_in(&page).await {
                Ok(path) => path,
                Err(outcome) => return outcome,
            };
            let shopping = {
                let _inside = Counted::among(&self.world.tally.inside);
                self.shop(&path).await
            };
            match shopping {
                Shopping::Over(outcome) => return outcome,
                Shopping::PutOut => {}
            }
            // The session ran out before anything could be had: back to the end of the line, as anybody.
            self.served = CancellationToken::new();
            let returns = {
                let mut person = self.tab.person();
                person.record.returns += 1;
                person.record.returns
            };
            if returns > MOST_RETURNS {
                self.world.tally.unexpected("put out of the shop more than 50 times");
                return Outcome::Failed;
            }
            page = path;
        }
    }

    /// Opens the page and waits as long as it takes. Returns the shop's path, or how the visit ended.
    async fn get_in(&mut self, page: &str) -> Result<String, Outcome> {
        let mut tries = 0;
        loop {
            match self.open(page).await {
                Ok(Page::Shop(path)) => {
                    let mut person = self.tab.person();
                    person.record.direct |= person.record.joined_ms.is_none();
                    return Ok(path);
                }
                Ok(Page::Queued) => {
                    let waited = {
                        let _waiting = Counted::among(&self.world.tally.waiting);
                        let more_tabs = tabs::open_more(self, page);
                        let waited = self.wait(page).await;
                        if matches!(waited, InLine::Admitted(_)) {
                            tabs::close(more_tabs).await;
                        }
                        waited
                    };
                    match waited {
                        InLine::Admitted(location) => match self.open(&location).await {
                            Ok(Page::Shop(path)) => return Ok(path),
                            Ok(Page::Queued) => self.world.tally.unexpected("admitted, and then told to wait"),
                            Ok(Page::Odd) | Err(_) => {}
                        },
                        InLine::OpenedNow => {
                            tries += 1;
                            if tries < MOST_PAGES {
                                continue;
                            }
                        }
                        InLine::Over(outcome) => return Err(outcome),
                    }
                }
                Ok(Page::Odd) | Err(_) => {}
            }
            tries += 1;
            if tries >= MOST_PAGES {
                self.world.tally.unexpected("ten pages opened, and neither the shop nor a place in the line");
                return Err(Outcome::Failed);
            }
            let pause = self.pause_between(500, 1_500);
            tokio::time::sleep(pause).await;
        }
    }

    /// Opens a page as a browser does, following redirects on this host.
    pub(super) async fn open(&mut self, page: &str) -> Result<Page, NoAnswer> {
        let mut path = page.to_owned();
        for _ in 0..6 {
            let answer = self.ask(&Ask::page(&path)).await?;
            match answer.status {
                301 | 302 | 303 | 307 | 308 => match self.same_host_path(&answer) {
                    Some(next) => path = next,
                    None => return Ok(Page::Odd),
                },
                _ => return Ok(self.judge_page(&answer, path)),
            }
        }
        self.world.tally.unexpected("page: more than six redirects in a row");
        Ok(Page::Odd)
    }

    fn judge_page(&self, answer: &Answer, path: String) -> Page {
        let inside = self.tab.person().is_inside();
        if inside && answer.status == 200 {
            if let Some(event) = path.strip_prefix("/events/").and_then(|rest| rest.split(['/', '?']).next()) {
                self.world.tally.saw_event(event);
            }
            return Page::Shop(path);
        }
        if QUEUED.contains(&answer.status) && answer.headers.contains_key(header::RETRY_AFTER) {
            let mut person = self.tab.person();
            person.record.joined_ms.get_or_insert_with(now_ms);
            return Page::Queued;
        }
        match (inside, answer.status) {
            (false, 200) => self.world.tally.unexpected("page: the shop answered somebody without a session"),
            _ => self.world.tally.unexpected(&format!("page: {}", answer.describe())),
        }
        Page::Odd
    }

    fn same_host_path(&self, answer: &Answer) -> Option<String> {
        let location = answer.header(header::LOCATION).unwrap_or_default();
        let target = location.parse::<http::Uri>().ok();
        let path = target.as_ref().and_then(|uri| {
            let here = uri.authority().is_none_or(|authority| Some(authority) == self.world.plan.url.authority());
            here.then(|| uri.path_and_query().map(|path| path.as_str().to_owned()))?
        });
        let path = path.filter(|path| path.starts_with('/'));
        if path.is_none() {
            self.world.tally.unexpected("page: a redirect that leaves this host or leads nowhere");
        }
        path
    }

    /// Gives up place or session.
    pub(super) async fn leave(&mut self) {
        let ask = Ask::post(Kind::Leave, &self.world.plan.endpoint("leave"), None);
        let sent_ms = now_ms();
        match self.ask(&ask).await {
            Ok(answer) if answer.status == 204 => self.tab.person().record.end_session(sent_ms),
            Ok(answer) => self.world.tally.unexpected(&format!("leave: {}", answer.describe())),
            Err(_) => {}
        }
    }

    pub(super) async fn ask(&mut self, ask: &Ask) -> Result<Answer, NoAnswer> {
        self.tab.ask(ask, &mut self.dice).await
    }

    pub(super) fn pause_between(&mut self, from_ms: u64, to_ms: u64) -> Duration {
        Duration::from_millis(self.dice.random_range(from_ms..=to_ms))
    }
}

/// The statuses a room may be told to answer queued requests with.
const QUEUED: [u16; 4] = [503, 429, 202, 200];

/// Whether the waiting room answered a program in the shop's place: with its status document. The shop itself may well
/// say 503 too.
pub(super) fn is_queued(answer: &Answer) -> bool {
    #[derive(serde::Deserialize)]
    #[expect(dead_code, reason = "only their presence counts")]
    struct StatusDocument {
        room: String,
        state: String,
    }
    QUEUED.contains(&answer.status) && serde_json::from_slice::<StatusDocument>(&answer.body).is_ok()
}
