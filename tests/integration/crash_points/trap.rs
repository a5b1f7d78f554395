//! Lines between a box office and what it stands on, with a trap in them: at one step of an order, told by what goes over
//! the line, the process is killed. The step is then either not done, or done and nobody knows.

use std::{
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::support::watched_program::Watched;

/// Something an order needs done elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A script, by its name, in Redis.
    Script(&'static str),
    /// The commit of the transaction in which this was said, in `PostgreSQL`.
    Commit(&'static str),
    /// A call to the provider, by how it begins.
    Call(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The step is never heard of.
    Before,
    /// The step is done, its answer never heard.
    After,
}

/// Kills its victim once.
pub struct Trap {
    step: Step,
    moment: Moment,
    /// What tells the step, any of them.
    signs: Vec<Vec<u8>>,
    is_armed: AtomicBool,
    victim: OnceLock<Watched>,
}

impl Trap {
    /// `signs` are the names that Redis has for the script, if it is one.
    pub fn new(step: Step, moment: Moment, script_names: Vec<String>) -> Arc<Self> {
        let signs = match step {
            Step::Script(_) => script_names.into_iter().map(String::into_bytes).collect(),
            Step::Commit(words) | Step::Call(words) => vec![words.as_bytes().to_owned()],
        };
        Arc::new(Self { step, moment, signs, is_armed: AtomicBool::new(false), victim: OnceLock::new() })
    }

    pub fn set_for(&self, victim: Watched) {
        assert!(self.victim.set(victim).is_ok(), "one victim for each trap");
    }

    pub fn arm(&self) {
        self.is_armed.store(true, SeqCst);
    }

    pub fn has_sprung(&self) -> bool {
        !self.is_armed.load(SeqCst)
    }

    /// Whether this is the step. `said` is what went over this connection since its last transaction began.
    fn catches(&self, line: Line, said: &mut Vec<u8>, words: &[u8]) -> bool {
        let tells = |text: &[u8]| self.signs.iter().any(|sign| has(text, sign));
        let is_it = match (self.step, line) {
            (Step::Script(_), Line::Redis) | (Step::Call(_), Line::Provider) => tells(words),
            (Step::Commit(_), Line::Postgres) => {
                if has(words, b"BEGIN") {
                    said.clear();
                }
                said.extend_from_slice(words);
                has(words, b"COMMIT\0") && tells(said)
            }
            _ => false,
        };
        is_it && self.is_armed.swap(false, SeqCst)
    }

    fn kill(&self) {
        self.victim.get().expect("the trap is set before anything is ordered").kill();
    }
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[derive(Debug, Clone, Copy)]
pub enum Line {
    Redis,
    Postgres,
    Provider,
}

impl Line {
    /// The near end of a line to the service on `port`.
    pub async fn to(self, port: u16, trap: &Arc<Trap>) -> SocketAddr {
        let (listener, trap) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::clone(trap));
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                for end in [&client, &server] {
                    end.set_nodelay(true).unwrap();
                }
                tokio::spawn(carry(client, server, self, Arc::clone(&trap)));
            }
        });
        address
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, line: Line, trap: Arc<Trap>) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let (mut said, mut is_caught) = (Vec::new(), false);
    loop {
        tokio::select! {
            length = client.read(&mut asked) => {
                let Ok(length @ 1..) = length else { return };
                if trap.catches(line, &mut said, &asked[..length]) {
                    if trap.moment == Moment::Before {
                        return trap.kill();
                    }
                    is_caught = true;
                }
                if server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
            }
            length = server.read(&mut answered) => {
                if is_caught {
                    return trap.kill();
                }
                let Ok(length @ 1..) = length else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
