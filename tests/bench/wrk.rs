//! `wrk` as a load generator: every subject gets the same requests but for their target.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, bail};

use super::{client::Client, figures::Sample, servers::Server};

/// Requests that are sent over and over, in turn, by one thread over many connections.
#[derive(Debug)]
pub struct Load {
    dir: tempfile::TempDir,
    first: String,
    connections: u32,
    time: Duration,
    status: u16,
}

impl Load {
    /// `method path`, with each of `heads` (a header field a line) in turn. All are to be answered with `status`.
    pub fn new(
        (method, path, status): (&str, &str, u16),
        heads: &[String],
        connections: u32,
        time: Duration,
    ) -> anyhow::Result<Self> {
        let request = |head: &String| {
            format!("{method} {path} HTTP/1.1\nHost: shop.test\n{head}\n\n")
                .replace("\n\n\n", "\n\n")
                .replace('\n', "\r\n")
        };
        let requests: Vec<String> = heads.iter().map(request).collect();
        // A JSON string without a control character but CR and LF is a Lua string.
        let list = serde_json::to_string(&requests)?;
        let list = list.trim_matches(['[', ']']);
        let script = format!(
            "local requests, last = {{ {list} }}, 0\n\
             function request()\n  last = last % #requests + 1\n  return requests[last]\nend\n\
             function done(summary, latency)\n  local e = summary.errors\n  \
             io.write(string.format('RESULT %d %d %d %d %d\\n', summary.requests, summary.duration, e.status, \
             e.connect + e.read + e.write + e.timeout, latency:percentile(99)))\nend\n"
        );
        let dir = tempfile::tempdir()?;
        fs::write(dir.path().join("load.lua"), script)?;
        let first = requests.into_iter().next().context("nothing to send")?;
        Ok(Self { dir, first, connections, time, status })
    }

    /// One round against `server`; what `counted` spends on a processor meanwhile counts.
    pub fn run(&self, server: &Server, counted: &Server) -> anyhow::Result<Sample> {
        let status = Client::connect(server.port)?.ask(&self.first)?.status;
        if status != self.status {
            bail!("status {status} instead of {} for {}", self.status, self.first.lines().next().unwrap_or_default());
        }
        let before = counted.cpu_seconds()?;
        let output = Command::new("wrk")
            .args(["-t1", &format!("-c{}", self.connections), &format!("-d{}s", self.time.as_secs()), "-s"])
            .arg(self.dir.path().join("load.lua"))
            .arg(format!("http://127.0.0.1:{}/", server.port))
            .output()?;
        let cpu = counted.cpu_seconds()? - before;
        let said = String::from_utf8_lossy(&output.stdout);
        let result = said.lines().find_map(|line| line.strip_prefix("RESULT "));
        let numbers: Vec<f64> = result
            .with_context(|| format!("wrk said {said} {}", String::from_utf8_lossy(&output.stderr)))?
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let [requests, micros, refused, errors, p99_micros] = numbers[..] else { bail!("wrk said {said}") };
        // wrk counts statuses of 400 and more.
        let wrong = if self.status < 400 { refused } else { 0.0 };
        if wrong + errors > 0.0 || requests == 0.0 {
            bail!("of {requests} requests {wrong} were refused, and {errors} failed");
        }
        Ok(Sample { per_second: requests * 1e6 / micros, per_cpu_second: requests / cpu, p99_ms: p99_micros / 1e3 })
    }
}
