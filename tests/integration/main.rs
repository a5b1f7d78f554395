//! One file per story. Each test stands alone: its own servers, its own ports, its own data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc, missing_docs)]

mod adaptive_room;
mod admission_joins;
mod admission_presence;
mod admission_sessions;
mod box_office_holds;
mod box_office_http;
mod box_office_orders;
mod box_office_reconciler;
mod chaos;
mod cli_errors;
mod crash_points;
mod demo_sale;
mod field_cases;
mod gateway_gate;
mod gateway_program;
mod gateway_proxy;
mod layout;
mod ledger_postgres;
mod lottery;
mod lua_folder;
mod many_nodes;
mod pages_assets;
mod payments_faults;
mod payments_sandbox;
mod payments_webhooks;
mod postgres_server;
mod queue_line;
mod race;
mod readme_commands;
mod rehearse_play;
mod rehearse_simulate;
mod room_endpoints;
mod store_contract;
mod store_differential;
mod support;
