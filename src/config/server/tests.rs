use super::*;
use crate::config::{Overrides, ServeConfig, file::ConfigFile};

fn load(toml: &str) -> Result<ServeConfig, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stanchion.toml");
    std::fs::write(&file, format!("{toml}\n[[rooms]]\norigin = \"http://127.0.0.1:1\"\n")).unwrap();
    ServeConfig::load(Some(&file), Overrides::default()).map_err(|error| error.to_string())
}

fn addresses(toml: &str) -> Vec<String> {
    load(toml).unwrap().listeners.iter().map(|listener| listener.address.to_string()).collect()
}

#[test]
fn there_may_be_one_listener_or_several() {
    assert_eq!(addresses(""), ["127.0.0.1:8080"]);
    assert_eq!(addresses("listen = \"[::1]:80\""), ["[::1]:80"]);
    assert_eq!(addresses("listen = [\"0.0.0.0:80\", \"[::]:80\"]"), ["0.0.0.0:80", "[::]:80"]);
    let tls = "[[listeners]]\naddress = \"0.0.0.0:443\"\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
    assert_eq!(addresses(tls), ["0.0.0.0:443"], "no plain one that nobody asked for");
    assert_eq!(addresses(&format!("listen = \"0.0.0.0:80\"\n{tls}")), ["0.0.0.0:80", "0.0.0.0:443"]);
    let config = load(tls).unwrap();
    let files = config.listeners[0].tls.as_ref().unwrap();
    assert_eq!((files.certificate.to_str(), files.key.to_str()), (Some("c.pem"), Some("k.pem")));
}

#[test]
fn what_cannot_be_is_named_with_its_cure() {
    for (toml, word) in [
        ("listen = []", "at least one"),
        ("listen = 80", "a list of them"),
        ("listen = [\"127.0.0.1:80\", \"127.0.0.1:80\"]", "two listeners"),
        ("listen = [\"127.0.0.1:80\", \"127.0.0.1:9090\"]", "admin"),
        ("listen = [\"127.0.0.1:80\", \"127.0.0.1:1\"]", "where is the shop"),
        ("[[listeners]]\ncertificate = \"c.pem\"\nkey = \"k.pem\"", "address is missing"),
        ("[[listeners]]\naddress = \"127.0.0.1:1\"\nkey = \"k.pem\"", "belong together"),
        ("[[listeners]]\naddress = \"127.0.0.1:2\"\nproxy_protocol = true", "trusted_proxies"),
        ("[[listeners]]\naddress = \"127.0.0.1:2\"\ntls = true", "unknown field `tls`"),
        ("[server]\ntrusted_proxies = [\"10.0.0.0/33\"]", "10.0.0.0/33"),
        ("[server]\nforwarded_header = \"x-real-ip\"", "x-real-ip"),
        ("[server]\nmax_connections = 1", "max_connections 1: use 16"),
        ("[server]\nmax_header_bytes = 100", "max_header_bytes"),
        ("[server]\nmax_headers = 101", "max_headers"),
        ("[server]\nmax_target_bytes = 20000", "max_target_bytes"),
        ("[server]\nheader_deadline = \"0s\"", "header_deadline"),
        ("[server]\nkeep_alive = \"2h\"", "keep_alive"),
        ("[server]\ndrain_delay = \"2h\"", "drain_delay"),
        ("[server]\nmin_body_rate = 1000000000", "min_body_rate"),
        ("[server]\nbacklog = 5", "unknown field `backlog`"),
    ] {
        let said = load(toml).unwrap_err();
        assert!(said.contains(word), "{word:?} is missing from: {said}");
    }
}

#[test]
fn a_proxy_is_a_network_or_an_address() {
    let config = load("[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\", \"192.0.2.1\"]").unwrap();
    let networks: Vec<String> = config.server.trusted_proxies.iter().map(ToString::to_string).collect();
    assert_eq!(networks, ["10.0.0.0/8", "::1/128", "192.0.2.1/32"]);
}

/// What the documented file says is what holds without a file.
#[test]
fn the_documented_defaults_are_the_defaults() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/stanchion.toml")).unwrap();
    let documented = ConfigFile::parse(&text).unwrap().server;
    assert!(documented.max_body_bytes.is_some() && documented.drain_deadline.is_some(), "the table is documented");
    let mut problems = Problems::default();
    assert_eq!(ServerConfig::check(&documented, &mut problems), ServerConfig::default());
    let table = text.split("[server]").nth(1).unwrap().split("\n[").next().unwrap();
    // The parser names every field it knows.
    let known = ConfigFile::parse("[server]\nno_such = 1").unwrap_err().to_string();
    let fields: Vec<&str> = known.split('`').skip(3).step_by(2).collect();
    assert!(fields.len() > 10, "{known}");
    for field in fields {
        assert!(table.contains(&format!("\n{field} = ")), "{field} is missing from deploy/stanchion.toml");
    }
}
