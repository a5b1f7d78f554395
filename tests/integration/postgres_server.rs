//! The harness itself: a real `PostgreSQL` comes, survives being killed, and goes.

use sqlx::{Connection as _, PgConnection};

use crate::support::postgres::PostgresServer;

#[tokio::test]
async fn a_killed_server_comes_back_with_what_was_committed() {
    let mut server = PostgresServer::start_with(&["max_connections=20"]);
    assert_eq!(server.sql("SHOW max_connections"), "20");
    let mut owner = PgConnection::connect(&server.url()).await.unwrap();
    sqlx::query("CREATE TABLE seats (seat TEXT)").execute(&mut owner).await.unwrap();
    sqlx::query("INSERT INTO seats VALUES ('A1')").execute(&mut owner).await.unwrap();
    server.kill();
    owner.ping().await.unwrap_err();
    server.start_again();
    assert_eq!(server.sql("SELECT seat FROM seats"), "A1");
}

#[tokio::test]
async fn it_has_a_superuser_and_as_many_databases_as_wanted() {
    let server = PostgresServer::start();
    PgConnection::connect(&server.superuser_url()).await.unwrap();
    let mut other = PgConnection::connect(&server.database("other")).await.unwrap();
    let port: i32 = sqlx::query_scalar("SELECT inet_server_port()").fetch_one(&mut other).await.unwrap();
    assert_eq!(port, i32::from(server.port()));
    server.signal("-INT");
    while other.ping().await.is_ok() {}
}
