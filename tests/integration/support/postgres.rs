//! A real `PostgreSQL` of the test's own, on a free port and on a socket in its directory, gone with the value.
//!
//! It does not flush to the disk unless asked to: what is killed is the server, never the machine.

use std::{
    fs::File,
    io::Write as _,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::redis_server::free_port;

const CURE: &str = "PostgreSQL is not installed: apt-get install postgresql, or run tests/run, which does";
/// The owner of the database `stanchion`: no superuser, as in earnest.
const USER: &str = "stanchion";
const PASSWORD: &str = "correct-horse";

pub struct PostgresServer {
    child: Child,
    port: u16,
    dir: tempfile::TempDir,
    settings: Vec<String>,
}

impl PostgresServer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts with more settings, such as `["max_connections=20"]`.
    pub fn start_with(settings: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
        copy(&template(), &dir.path().join("data"));
        hand_over(dir.path());
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let (child, port) = up(dir.path(), &settings, None);
        Self { child, port, dir, settings }
    }

    /// The address of the database `stanchion`, with its owner's password.
    pub fn url(&self) -> String {
        self.url_of("stanchion")
    }

    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// The same for the superuser.
    pub fn superuser_url(&self) -> String {
        format!("postgres://postgres:{PASSWORD}@127.0.0.1:{}/stanchion", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Another, empty database, and its address.
    pub fn database(&self, name: &str) -> String {
        self.sql(&format!("CREATE DATABASE {name} OWNER {USER}"));
        self.url_of(name)
    }

    /// Runs statements as the superuser and gives back the rows, columns parted by `|`.
    pub fn sql(&self, text: &str) -> String {
        self.sql_in("stanchion", text)
    }

    pub fn sql_in(&self, database: &str, text: &str) -> String {
        let mut psql = Command::new(program("psql"));
        psql.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"]).arg(self.dir.path());
        psql.args(["-p", &self.port.to_string(), "-d", database, "-c", text]);
        let out = psql.stdin(Stdio::null()).output().unwrap();
        assert!(out.status.success(), "{text}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
    }

    /// Kills every process of it on the spot.
    pub fn kill(&mut self) {
        let pid = self.child.id();
        // The parent first, so that it does not start anything anew.
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let _ = self.child.kill();
        let _ = Command::new("kill").arg("-KILL").args(children.split_whitespace()).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }

    /// Starts it again where it was, on the same data.
    pub fn start_again(&mut self) {
        self.child = up(self.dir.path(), &self.settings, Some(self.port)).0;
    }

    /// Sends a signal to the parent process: `-INT` breaks off every transaction and stops it.
    pub fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts it on `port` or a free one, and waits until it takes connections.
fn up(dir: &Path, settings: &[String], port: Option<u16>) -> (Child, u16) {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let port = port.unwrap_or_else(free_port);
        let mut child = spawn(dir, port, settings);
        while child.try_wait().unwrap().is_none() {
            let mut ready = Command::new(program("pg_isready"));
            ready.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).stdin(Stdio::null());
            if ready.status().unwrap().success() {
                return (child, port);
            }
            assert!(Instant::now() < deadline, "PostgreSQL does not come up: {}", log(dir));
            std::thread::sleep(Duration::from_millis(10));
        }
        // Another process took the port between the probe and the start; or what was killed has not quite gone yet.
        let said = log(dir);
        let is_passing = said.contains("could not bind") || said.contains("still in use") || said.contains("lock file");
        assert!(is_passing && Instant::now() < deadline, "PostgreSQL would not start: {said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn spawn(dir: &Path, port: u16, settings: &[String]) -> Child {
    let mut command = unprivileged("postgres");
    command.arg("-D").arg(dir.join("data")).args(["-p", &port.to_string(), "-k"]).arg(dir);
    let sparing = ["listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=16MB", "max_wal_size=64MB"];
    for setting in sparing.into_iter().chain(settings.iter().map(String::as_str)) {
        command.args(["-c", setting]);
    }
    let log = File::create(dir.join("log")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect(CURE)
}

fn log(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("log")).unwrap_or_default()
}

/// A data directory as `initdb` makes it, with the role and the database; made once for all tests.
fn template() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let done = target.join("postgres-template-1");
    let lock = File::create(target.join("postgres-template.lock")).unwrap();
    lock.lock().unwrap();
    if !done.exists() {
        // Elsewhere first: who runs the server may not be allowed to look into this directory.
        let dir = tempfile::tempdir().unwrap();
        hand_over(dir.path());
        let data = dir.path().join("data");
        initdb(&data, dir.path());
        let half = target.join("postgres-template.half");
        let _ = std::fs::remove_dir_all(&half);
        copy(&data, &half);
        std::fs::rename(half, &done).unwrap();
    }
    done
}

fn initdb(data: &Path, dir: &Path) {
    let password = dir.join("password");
    std::fs::write(&password, PASSWORD).unwrap();
    hand_over(dir);
    let mut initdb = unprivileged("initdb");
    // Passwords in the clear: a stronger exchange costs a debug build more than everything else in a test.
    initdb.args(["--no-sync", "-U", "postgres", "-A", "trust", "--auth-host=password", "-E", "UTF8", "--locale=C"]);
    initdb.args(["--wal-segsize=1", "--pwfile"]).arg(&password).arg("-D").arg(data);
    let out = initdb.stdin(Stdio::null()).output().expect(CURE);
    assert!(out.status.success(), "initdb: {}", String::from_utf8_lossy(&out.stderr));
    let mut single = unprivileged("postgres");
    single.args(["--single", "-F", "-j", "-D"]).arg(data).arg("postgres");
    let mut single = single.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let sql = format!("CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}';\n\nCREATE DATABASE stanchion OWNER {USER};\n\n");
    single.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
    let out = single.wait_with_output().unwrap();
    assert!(out.status.success(), "postgres --single: {}", String::from_utf8_lossy(&out.stderr));
}

/// Debian keeps the programs out of the way, one folder for each version.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.filter_map(|version| version.file_name().to_str()?.parse::<u32>().ok()).max();
    newest.map_or_else(|| name.into(), |newest| format!("/usr/lib/postgresql/{newest}/bin/{name}").into())
}

/// The server refuses to run as root; then it runs as the user that its package made.
fn unprivileged(name: &str) -> Command {
    let mut command = Command::new(program(name));
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group).current_dir("/");
    }
    command
}

fn other_user() -> Option<(u32, u32)> {
    let id = |args: &[&str]| {
        let out = Command::new("id").args(args).output().unwrap();
        String::from_utf8(out.stdout).unwrap().trim().parse::<u32>().ok()
    };
    (id(&["-u"]) == Some(0)).then(|| (id(&["-u", "postgres"]).expect(CURE), id(&["-g", "postgres"]).expect(CURE)))
}

/// Gives a folder and all that is in it to who runs the server.
fn hand_over(path: &Path) {
    let Some((user, group)) = other_user() else { return };
    let mut all = vec![path.to_owned()];
    while let Some(path) = all.pop() {
        if path.is_dir() {
            all.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        chown(&path, Some(user), Some(group)).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}
