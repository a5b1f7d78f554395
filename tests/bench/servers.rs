//! The programs that are measured: started on free ports of loopback, killed by their id at the end.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

use super::visitors;

/// A running program, ended with the value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub port: u16,
    _dir: tempfile::TempDir,
}

/// Says what to install before anything has run for minutes.
pub fn require_programs() -> anyhow::Result<()> {
    let programs = ["redis-server", "redis-benchmark", "nginx", "haproxy", "wrk"];
    let is_missing =
        |program: &&str| Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err();
    let missing: Vec<_> = programs.into_iter().filter(is_missing).collect();
    if !missing.is_empty() {
        bail!("{} not found; on Debian: sudo apt-get install redis-server nginx-light haproxy wrk", missing.join(", "));
    }
    Ok(())
}

/// A `redis-server` that keeps nothing.
pub fn redis() -> anyhow::Result<Server> {
    start(|port, _| {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
        Ok(command)
    })
}

/// The gateway before a shop that nobody reaches: one slot and a slow rate, so that everybody waits.
pub fn gateway(binary: &Path, redis: &Server) -> anyhow::Result<Server> {
    gateway_with(
        binary,
        redis,
        "origin = \"http://127.0.0.1:9\"\ncapacity = 1\nrate = 0.01\nburst = 1\nsettle = \"1s\"\n\
         claim_window = \"1h\"\nabsent_after = \"1h\"\ngrace = \"2h\"\n",
    )
}

/// The gateway before a shop, for visitors who are inside, and without a bound on what one of them may ask for at once.
pub fn proxy(binary: &Path, redis: &Server, origin: &Server, in_flight: u32) -> anyhow::Result<Server> {
    let origin = origin.port;
    let room = format!(
        "origin = \"http://127.0.0.1:{origin}\"\nmax_parallel = 0\nreads_in_flight = {in_flight}\n\
         [[rooms.bypass]]\npath_prefix = \"/open\"\n"
    );
    gateway_with(binary, redis, &room)
}

fn gateway_with(binary: &Path, redis: &Server, room: &str) -> anyhow::Result<Server> {
    let binary = binary.canonicalize().with_context(|| format!("{}: build it first", binary.display()))?;
    let redis = redis.port;
    start(|port, dir| {
        let admin = free_port()?;
        let config = format!(
            "listen = \"127.0.0.1:{port}\"\nadmin = \"127.0.0.1:{admin}\"\nredis = \"redis://127.0.0.1:{redis}\"\n\
             [[rooms]]\n{room}"
        );
        let file = dir.join("stanchion.toml");
        fs::write(&file, config)?;
        let mut command = Command::new(&binary);
        command
            .args(["serve", "--config"])
            .arg(file)
            .arg("--data")
            .arg(dir)
            .env("STANCHION_KEYS", visitors::key_hex())
            .env("STANCHION_LOG", "warn");
        Ok(command)
    })
}

/// The box office, nothing of it sold, with money from nowhere: holds need none.
pub fn box_office(binary: &Path, redis: &Server, seats: u32) -> anyhow::Result<Server> {
    let binary = binary.canonicalize().with_context(|| format!("{}: build it first", binary.display()))?;
    start(|port, dir| {
        let mut command = Command::new(&binary);
        command
            .args(["box-office", "--listen", &format!("127.0.0.1:{port}"), "--admin", "127.0.0.1:0"])
            .args(["--seats", &seats.to_string(), "--redis", &format!("redis://127.0.0.1:{}", redis.port), "--data"])
            .arg(dir)
            .args(["--provider", "http://127.0.0.1:9"])
            .env("STANCHION_PROVIDER_KEY", "a-key")
            .env("STANCHION_WEBHOOK_SECRET", "sixteen-or-more-characters")
            .env("STANCHION_LOG", "warn");
        Ok(command)
    })
}

/// nginx with one static file, as large as the answer to a poll; with `cached`, it keeps the file open, which it does not
/// unless told.
pub fn nginx(file: &[u8], cached: bool) -> anyhow::Result<Server> {
    let cache = if cached { "open_file_cache max=10 inactive=1h;" } else { "" };
    start(|port, dir| {
        let config = format!(
            "worker_processes auto;\npid nginx.pid;\nerror_log stderr crit;\nevents {{ worker_connections 1024; }}\n\
             http {{\n  access_log off;\n  sendfile on;\n  tcp_nopush on;\n  tcp_nodelay on;\n  keepalive_requests 1000000000;\n\
             {cache}\n  default_type application/json;\n\
             server {{ listen 127.0.0.1:{port} reuseport; root {root}; }}\n}}\n",
            root = dir.display(),
        );
        fs::write(dir.join("nginx.conf"), config)?;
        fs::write(dir.join("status"), file)?;
        // The workers are another user's when the master is root's.
        fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(dir).args(["-c", "nginx.conf", "-g", "daemon off;"]);
        Ok(command)
    })
}

/// nginx as an origin that answers everything with this.
pub fn nginx_origin(body: &str) -> anyhow::Result<Server> {
    nginx_site(&format!("location / {{ return 200 '{body}'; }}"))
}

/// nginx before that origin, with the pool of connections that its documentation advises.
pub fn nginx_proxy(origin: &Server) -> anyhow::Result<Server> {
    let origin = origin.port;
    nginx_site(&format!(
        "location / {{ proxy_pass http://shop; proxy_http_version 1.1; proxy_set_header Connection ''; \
         proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; }} }}\n\
         upstream shop {{ server 127.0.0.1:{origin}; keepalive 512; keepalive_requests 1000000000;"
    ))
}

fn nginx_site(site: &str) -> anyhow::Result<Server> {
    start(|port, dir| {
        let config = format!(
            "worker_processes auto;\npid nginx.pid;\nerror_log stderr crit;\nevents {{ worker_connections 8192; }}\n\
             http {{\n  access_log off;\n  tcp_nodelay on;\n  keepalive_requests 1000000000;\n\
             server {{ listen 127.0.0.1:{port} reuseport backlog=16384; {site} }}\n}}\n"
        );
        fs::write(dir.join("nginx.conf"), config)?;
        fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(dir).args(["-c", "nginx.conf", "-g", "daemon off;"]);
        Ok(command)
    })
}

/// `HAProxy` before that origin.
pub fn haproxy(origin: &Server) -> anyhow::Result<Server> {
    let origin = origin.port;
    start(|port, dir| {
        let config = format!(
            "global\n  maxconn 6000\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  \
             timeout server 30s\n  option forwardfor\n  http-reuse always\nfrontend shop\n  bind 127.0.0.1:{port} backlog 16384\n  \
             default_backend shop\nbackend shop\n  server shop 127.0.0.1:{origin}\n"
        );
        fs::write(dir.join("haproxy.cfg"), config)?;
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f", "haproxy.cfg"]);
        Ok(command)
    })
}

/// Another process may take the port between the probe and the start, so it is tried again.
fn start(command: impl Fn(u16, &Path) -> anyhow::Result<Command>) -> anyhow::Result<Server> {
    for _ in 0..3 {
        let (port, dir) = (free_port()?, tempfile::tempdir()?);
        let mut command = command(port, dir.path())?;
        let child = command
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        let mut server = Server { child, port, _dir: dir };
        if server.listens() {
            return Ok(server);
        }
    }
    bail!("a server would not start")
}

pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Server {
    fn listens(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            sleep(Duration::from_millis(20));
        }
        false
    }

    /// Seconds on a processor so far, of all its threads and its children's.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let mut nanoseconds = 0.0;
        for process in self.processes() {
            for thread in fs::read_dir(format!("/proc/{process}/task"))? {
                // A thread may end in between.
                let stat = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
                nanoseconds += stat.split(' ').next().and_then(|on_cpu| on_cpu.parse().ok()).unwrap_or(0.0);
            }
        }
        Ok(nanoseconds / 1e9)
    }

    /// Memory in use, in MiB.
    pub fn resident_mib(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kib =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(|rest| rest.split_whitespace().next());
        Ok(kib.context("no VmRSS")?.parse::<f64>()? / 1_024.0)
    }

    fn processes(&self) -> Vec<u32> {
        let own = self.child.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|id| id.parse().ok()).chain([own]).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A polite end first: a master that is killed leaves its workers behind.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
