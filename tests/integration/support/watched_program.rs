//! Long-running commands of the real program which are killed and come back, as under a service manager.

use std::{
    fs::OpenOptions,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use stanchion::box_office::audit::Audit;

use super::{
    http::{Answer, try_request},
    program::command,
};

/// Whoever waits for a program that was killed is not in a hurry.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// The provider's key and secret in the program's environment.
pub const KEY: &str = "the-key";
pub const SECRET: &str = super::box_office::SECRET;

/// One command. Whatever ends it, it is started again with the same arguments, unless it is kept down.
#[derive(Clone)]
pub struct Watched(Arc<Mutex<State>>);

struct State {
    args: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
    is_wanted: bool,
}

impl Watched {
    /// Starts it; what it says goes to the end of `log`.
    pub fn start(log: &Path, args: &[&str]) -> Self {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let this = Self(Arc::new(Mutex::new(State { args, log: log.to_owned(), child: None, is_wanted: true })));
        let watched = Arc::downgrade(&this.0);
        tokio::spawn(async move {
            while let Some(state) = watched.upgrade() {
                state.lock().unwrap().watch();
                drop(state);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        this
    }

    /// Kills it on the spot. It comes back by itself.
    pub fn kill(&self) {
        self.0.lock().unwrap().kill();
    }

    /// Kills it on the spot, and keeps it down.
    pub fn keep_down(&self) {
        let mut state = self.0.lock().unwrap();
        state.is_wanted = false;
        state.kill();
    }

    /// Lets it come back.
    pub fn let_up(&self) {
        self.0.lock().unwrap().is_wanted = true;
    }
}

impl State {
    fn watch(&mut self) {
        let is_running = self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_none());
        if is_running || !self.is_wanted {
            return;
        }
        let log = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let mut program = command(&args);
        program.env("STANCHION_PROVIDER_KEY", KEY).env("STANCHION_WEBHOOK_SECRET", SECRET);
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(program.spawn().unwrap());
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A watched `stanchion box-office`, on ports that stay the same.
#[derive(Clone)]
pub struct OfficeProgram {
    pub program: Watched,
    /// Where buyers and the provider reach it.
    pub address: SocketAddr,
    admin: SocketAddr,
    pub log: PathBuf,
}

impl OfficeProgram {
    /// Starts it. `dir` is for its log and its data.
    pub fn start(dir: &Path, name: &str, args: &[&str]) -> Self {
        let [address, admin] = [lasting_port(), lasting_port()].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let (log, data) = (dir.join(format!("{name}.log")), dir.join(format!("{name}-data")));
        let (listen, admin_listen) = (address.to_string(), admin.to_string());
        let own = ["box-office", "--listen", &listen, "--admin", &admin_listen, "--data", data.to_str().unwrap()];
        Self { program: Watched::start(&log, &[&own, args].concat()), address, admin, log }
    }

    /// The answer, if there is one that is no passing trouble: a dead process, an absent store, a first try under way.
    pub async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Answer> {
        let headers = [&[("content-type", "application/json"), ("accept", "application/json")], headers].concat();
        let url = format!("http://{}{path}", self.address);
        let answer = try_request(method, &url, &headers, body.to_owned()).await.ok()?;
        let is_passing = answer.status == StatusCode::CONFLICT && answer.headers.contains_key("retry-after");
        (!answer.status.is_server_error() && !is_passing).then_some(answer)
    }

    /// What it says about itself, unless it cannot now.
    pub async fn audit(&self) -> Option<Audit> {
        let url = format!("http://{}/events/demo/audit", self.admin);
        let answer = try_request(Method::GET, &url, &[], "").await.ok()?;
        (answer.status == StatusCode::OK).then(|| serde_json::from_slice(&answer.body).unwrap())
    }

    /// Waits for an audit that `fits`.
    pub async fn audit_when(&self, what: &str, fits: impl Fn(&Audit) -> bool) -> Audit {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let audit = self.audit().await;
            match audit {
                Some(audit) if fits(&audit) => return audit,
                _ => assert!(Instant::now() < deadline, "waited too long for {what}: {audit:?}\n{}", self.said()),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The end of its log.
    pub fn said(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

/// A free port that stays free while its program is dead: none of those that the system gives to whoever asks for any.
pub fn lasting_port() -> u16 {
    loop {
        let port = rand::random_range(10_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
