//! Which database, and whether it will do.

use std::process::Output;

use crate::support::{
    box_office::{Place, Shop},
    postgres::PostgresServer,
    program::command,
    redis_server::free_port,
};

/// What is said when a box office is opened there; it must not be opened.
fn refusal(address: &str, more: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let listen = ["box-office", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let secrets = ["--provider-key", "a-key", "--webhook-secret", "sixteen-or-more-characters"];
    let data = ["--data", dir.path().to_str().unwrap(), "--database", address];
    let out = command(&[&listen[..], &secrets, &data, more].concat()).env("RUST_LOG", "debug").output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(!said.contains("correct-horse") && !said.contains("battery-staple"), "the password is in: {said}");
    said
}

#[test]
fn a_database_that_will_not_do_is_refused_with_the_cure() {
    let server = PostgresServer::start_with(&["max_connections=20"]);
    let nobody = free_port();
    for (address, more, words) in [
        (
            server.url().replace("correct-horse", "battery-staple"),
            &[][..],
            ["password authentication", "Check the user"],
        ),
        (server.url_of("elsewhere"), &[], ["does not exist", "createdb"]),
        (format!("postgres://stanchion:correct-horse@127.0.0.1:{nobody}/stanchion"), &[], ["refused", "running"]),
        (server.url(), &["--database-connections", "18"], ["at most 17", "max_connections"]),
        (format!("mysql://stanchion:correct-horse@127.0.0.1:{nobody}/x"), &[], ["database", "postgres://"]),
    ] {
        let said = refusal(&address, more);
        for word in words {
            assert!(said.contains(word), "{word:?} is missing from: {said}");
        }
    }
}

#[tokio::test]
async fn a_busy_server_is_shared() {
    let mut place = Place::on_postgres();
    let shop = Shop::open(&place, |_| {}).await;
    shop.hold_seats(&["A1"]).await.expect(201);
    shop.audit().await;
    let used = "SELECT COUNT(*), COUNT(*) FILTER (WHERE state = 'idle in transaction') FROM pg_stat_activity \
                WHERE application_name = 'stanchion box office'";
    let used = place.postgres().sql(used);
    let (open, in_transaction) = used.split_once('|').unwrap();
    assert!((1..=16).contains(&open.parse::<u32>().unwrap()), "{used}");
    assert_eq!(in_transaction, "0");
}

fn migrate(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(&[&["migrate"], arguments].concat()).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

/// On both databases.
#[test]
fn migrations_are_run_and_told() {
    let server = PostgresServer::start();
    let dir = tempfile::tempdir().unwrap();
    for database in [server.url(), dir.path().join("ledger.sqlite").display().to_string()] {
        let check = ["--check", "--database", &database];
        let (status, said) = migrate(&check);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("due: 1 ledger") && !said.contains("correct-horse"), "{said}");
        let (status, said) = migrate(&["--database", &database]);
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains("run: 1 ledger"), "{said}");
        for arguments in [&check[..], &["--database", &database]] {
            let (status, said) = migrate(arguments);
            assert_eq!((status, said.contains("up to date")), (Some(0), true), "{said}");
        }
    }
    let data = ["--check", "--data", dir.path().to_str().unwrap()];
    assert_eq!(migrate(&data).0, Some(0), "the file in --data is the default");
}

#[test]
fn a_ledger_of_a_newer_version_is_left_alone() {
    let server = PostgresServer::start();
    assert_eq!(migrate(&["--database", &server.url()]).0, Some(0));
    server.sql(
        "INSERT INTO _sqlx_migrations SELECT 9000, 'later', now(), true, checksum, 1 FROM _sqlx_migrations LIMIT 1",
    );
    for said in [refusal(&server.url(), &[]), migrate(&["--database", &server.url()]).1] {
        assert!(said.contains("9000") && said.contains("newer version"), "{said}");
    }
    assert_eq!(migrate(&["--check", "--database", &server.url()]).0, Some(1));
}
