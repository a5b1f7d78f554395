//! Every command in the README is run, as written there but for ports and sizes that a test must choose.

use std::path::Path;

use crate::support::program::{Demo, stanchion};

/// The commands of the README's `sh` blocks, after `cargo run --release --`.
fn commands() -> Vec<String> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let mut inside = false;
    let mut commands = Vec::new();
    for line in readme.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside => commands.push(command.to_owned()),
            _ => {}
        }
    }
    commands
}

#[test]
fn every_command_of_the_readme_works() {
    let data = tempfile::tempdir().unwrap();
    let demo = Demo::start(data.path(), &["--opens-in", "1s", "--seats", "20", "--hold-for", "5s"]);
    for command in commands() {
        let Some(args) = command.strip_prefix("cargo run --release -- ") else {
            panic!("the README has a command that this test cannot run: {command}")
        };
        let args: Vec<&str> = args.split_whitespace().collect();
        match args[0] {
            // Started above, on free ports.
            "demo" => assert_eq!(args.len(), 1, "{command}"),
            "rehearse" => rehearse(&demo, &args),
            "serve" => serve(&args),
            "check-config" => {
                let output = stanchion(&args);
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            }
            _ => panic!("the README has a command that this test does not know: {command}"),
        }
    }
}

/// A hundred visitors stand in for five thousand, and the demo's own address for 8080.
fn rehearse(demo: &Demo, args: &[&str]) {
    let args: Vec<&str> = args
        .iter()
        .map(|&arg| match arg {
            "http://127.0.0.1:8080" => demo.shop.as_str(),
            "5000" => "100",
            other => other,
        })
        .chain(["--admin", &demo.admin])
        .collect();
    let output = stanchion(&args);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("G7"), "no verdict in: {said}");
}

/// `serve` runs until stopped: it has worked when its log says that it listens.
fn serve(args: &[&str]) {
    use std::io::{BufRead as _, BufReader};
    let data = tempfile::tempdir().unwrap();
    let mut child = crate::support::program::command(args)
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"])
        .arg(data.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = lines.map_while(Result::ok).any(|line| line.contains("gateway listening"));
    let _ = child.kill();
    let _ = child.wait();
    assert!(listening, "serve ended without listening");
}
