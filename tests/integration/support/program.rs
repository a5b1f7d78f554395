//! The real `stanchion` program as a child process, on ports of its own choosing, killed by pid with the value.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    time::Duration,
};

/// Runs `stanchion` to its end, which must come within two minutes.
pub fn stanchion(args: &[&str]) -> Output {
    command(args).stdin(Stdio::null()).output().unwrap()
}

/// A command with nothing of the developer's environment that the program would read.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STANCHION_") {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

/// Any long-running command of the program, killed by pid with the value. Its log goes to the test's own.
pub struct Running(Child);

impl Running {
    pub fn start(args: &[&str], environment: &[(&str, &str)]) -> Self {
        Self(command(args).envs(environment.iter().copied()).stdin(Stdio::null()).spawn().unwrap())
    }

    /// Sends it a signal, such as `-STOP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running `stanchion demo`.
pub struct Demo {
    child: Child,
    /// `http://127.0.0.1:PORT` of the shop behind the waiting room.
    pub shop: String,
    /// The private listener.
    pub admin: String,
    /// The box office itself.
    pub box_office: String,
}

impl Demo {
    /// Starts on free ports.
    pub fn start(data: &Path, args: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", "127.0.0.1:0", data, args)
    }

    /// Starts on these addresses; a restart after a crash needs the ones from before.
    pub fn start_on(listen: &str, admin: &str, data: &Path, args: &[&str]) -> Self {
        let addresses = ["--listen", listen, "--admin", admin, "--box-office-listen", "127.0.0.1:0"];
        let mut child = command(&["demo"])
            .args(addresses)
            .arg("--data")
            .arg(data)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let banner = read_banner(&mut child);
        let word = |label: &str| {
            let line = banner.iter().find(|line| line.trim_start().starts_with(label));
            let line = line.unwrap_or_else(|| panic!("no line {label:?} in {banner:?}"));
            line.trim_start()[label.len()..].split_whitespace().next().unwrap().trim_end_matches('/').to_owned()
        };
        let origin = |url: String| url.split('/').take(3).collect::<Vec<_>>().join("/");
        Self {
            shop: origin(word("shop")),
            admin: origin(word("admin ")),
            box_office: origin(word("box office")),
            child,
        }
    }

    /// SIGKILL, as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the exit status.
    pub fn terminate(mut self) -> std::process::ExitStatus {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
        self.child.wait().unwrap()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines up to the one that ends the announcement.
fn read_banner(child: &mut Child) -> Vec<String> {
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    // Keeps reading to the end, so that the child never blocks on a full pipe.
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let mut stderr = child.stderr.take().unwrap();
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        eprint!("{text}");
        text
    });
    let mut lines = Vec::new();
    loop {
        match receiver.recv_timeout(Duration::from_secs(30)) {
            Ok(line) if line.starts_with("Play an opening") => return lines,
            Ok(line) => lines.push(line),
            Err(_) => {
                let _ = child.kill();
                panic!("demo did not start; it said {lines:?} and {:?}", complaints.join());
            }
        }
    }
}
