//! Logs to standard error: human lines on a terminal, JSON otherwise or when asked for.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts logging at the level in `STANCHION_LOG` (for example `info` or `stanchion=debug`), `default` when unset.
///
/// Log fields carry their unit in the name and never a token, a cookie or an address.
pub fn init(default: &str) {
    let filter = EnvFilter::try_from_env("STANCHION_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call (in tests) keeps the first subscriber, which is what we want.
    let _already_set = if std::io::stderr().is_terminal() {
        builder.with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
