//! A real `redis-server` of the test's own, on a free port, without persistence, gone with the value.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub struct RedisServer {
    child: Child,
    port: u16,
    dir: tempfile::TempDir,
    extra: Vec<String>,
}

impl RedisServer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts with more `redis-server` arguments, such as `["--maxmemory-policy", "allkeys-lru"]`.
    pub fn start_with(extra: &[&str]) -> Self {
        Self::start_as(|_| extra.iter().map(|&word| word.to_owned()).collect())
    }

    /// A replica, once it has the master's data.
    pub fn replica_of(master: &Self) -> Self {
        master.command("CONFIG SET repl-diskless-sync-delay 0");
        let replica = Self::start_with(&["--replicaof", &format!("127.0.0.1 {}", master.port)]);
        replica.wait_for("INFO replication", "master_link_status:up");
        replica
    }

    /// A Sentinel that calls the master `main` and needs no other's vote.
    pub fn sentinel_of(master: &Self) -> Self {
        let port = master.port;
        let sentinel = Self::start_as(|dir| {
            let file = dir.join("sentinel.conf");
            let settings = "down-after-milliseconds main 1000\nsentinel failover-timeout main 2000";
            let config = format!("sentinel monitor main 127.0.0.1 {port} 1\nsentinel {settings}\n");
            std::fs::write(&file, config).unwrap();
            vec!["--sentinel-config".to_owned(), file.to_str().unwrap().to_owned()]
        });
        sentinel.wait_for("SENTINEL MASTERS", "main");
        sentinel
    }

    fn start_as(extra: impl Fn(&Path) -> Vec<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let extra = extra(dir.path());
        // Another process may take the port between the probe and the start; then redis-server exits and we try again.
        for _ in 0..5 {
            let port = free_port();
            let mut child = spawn(port, dir.path(), &extra);
            if answers_ping(&mut child, port) {
                return Self { child, port, dir, extra };
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("redis-server would not start");
    }

    /// Kills it on the spot and leaves the port to nobody.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again where it was, in the same directory.
    pub fn start_again(&mut self) {
        self.child = spawn(self.port, self.dir.path(), &self.extra);
        assert!(answers_ping(&mut self.child, self.port), "redis-server would not start again");
    }

    /// Kills it and starts it again, with what the last `SAVE` wrote.
    pub fn restart(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Stops it without its noticing (`-STOP`), or lets it go on (`-CONT`).
    pub fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.pid().to_string()]).status().unwrap().success());
    }

    /// Asks until the answer holds this.
    pub fn wait_for(&self, line: &str, wanted: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let answer = self.command(line);
            if answer.contains(wanted) {
                return;
            }
            assert!(Instant::now() < deadline, "{line} never said {wanted}: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs one inline command in this database, and gives back the raw protocol reply.
    pub fn command_in(&self, database: u32, line: &str) -> String {
        let reply = self.command(&format!("SELECT {database}\r\n{line}"));
        reply.strip_prefix("+OK\r\n").unwrap_or(&reply).to_owned()
    }

    /// Runs one inline command and gives back the raw protocol reply.
    pub fn command(&self, line: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
        // A Sentinel knows no QUIT, but both answer before they follow suit.
        stream.shutdown(Shutdown::Write).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(port: u16, dir: &Path, extra: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    match extra {
        // A Sentinel wants its file first.
        [flag, file] if flag == "--sentinel-config" => command.args([file, "--sentinel"]),
        _ => command.args(["--save", "", "--appendonly", "no"]).args(extra),
    };
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is not installed: apt-get install redis-server, or run tests/run, which does")
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn answers_ping(child: &mut Child, port: u16) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            let mut reply = [0; 7];
            let answered = stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut reply).is_ok();
            // One that loads its data is there too.
            if answered && (&reply == b"+PONG\r\n" || &reply == b"-LOADIN") {
                return true;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}
