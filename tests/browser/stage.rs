//! The smallest server the pages can be tried on: it serves them, and answers what the test tells it to.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    response::Response,
    routing::get,
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use serde_json::Value;
use stanchion::{
    box_office::{pages as shop, views::EventView},
    embed::Asset,
    pages,
};
use tokio::{
    net::TcpListener,
    time::{Duration, Instant, sleep},
};

/// What the server answers next, by `METHOD /path`; and what it was asked.
#[derive(Default)]
pub struct Script {
    answers: HashMap<String, (u16, Value)>,
    html: HashMap<String, (String, String)>,
    asked: Vec<(String, String, HeaderMap)>,
}

#[derive(Clone)]
pub struct Stage {
    script: Arc<Mutex<Script>>,
    address: SocketAddr,
}

impl Stage {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stage = Self { script: Arc::default(), address: listener.local_addr().unwrap() };
        let router = Router::new()
            .route(
                "/__room/assets/{file}",
                get(|Path(file): Path<String>| async move { asset(pages::assets::find(&file)) }),
            )
            .route(
                "/box-office/assets/{file}",
                get(|Path(file): Path<String>| async move { asset(shop::asset(&file)) }),
            )
            .fallback(answer)
            .with_state(stage.clone());
        tokio::spawn(serve(listener, router));
        stage
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on, `what` (such as `GET /orders/o_1`) is answered with this JSON.
    pub fn json(&self, what: &str, status: u16, body: Value) {
        self.script.lock().unwrap().answers.insert(what.to_owned(), (status, body));
    }

    /// From now on, a navigation to `path` shows this document.
    pub fn page(&self, path: &str, html: String, csp: impl Into<String>) {
        self.script.lock().unwrap().html.insert(path.to_owned(), (html, csp.into()));
    }

    /// The event's page and its JSON, from one view.
    pub fn event(&self, view: &EventView) {
        let path = format!("/events/{}", view.id);
        let page = shop::event_page(view);
        self.page(&path, page.html, page.csp);
        self.json(&format!("GET {path}"), 200, serde_json::to_value(view).unwrap());
    }

    /// Waits until `what` was asked for so many times.
    pub async fn until_asked(&self, what: &str, times: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.asked(what).len() < times {
            assert!(Instant::now() < deadline, "{what} was asked for {} times only", self.asked(what).len());
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Bodies and headers of the requests for `what` so far.
    pub fn asked(&self, what: &str) -> Vec<(String, HeaderMap)> {
        let script = self.script.lock().unwrap();
        script
            .asked
            .iter()
            .filter(|(name, ..)| name == what)
            .map(|(_, body, head)| (body.clone(), head.clone()))
            .collect()
    }
}

async fn answer(State(stage): State<Stage>, method: Method, uri: Uri, headers: HeaderMap, body: String) -> Response {
    let mut script = stage.script.lock().unwrap();
    let what = format!("{method} {}", uri.path());
    let wants_json = headers.get("accept").is_some_and(|accept| accept == "application/json");
    script.asked.push((what.clone(), body, headers));
    if !wants_json && let Some((html, csp)) = script.html.get(uri.path()) {
        let response = Response::builder().header("content-type", "text/html; charset=utf-8");
        return response.header("content-security-policy", csp).body(Body::from(html.clone())).unwrap();
    }
    match script.answers.get(&what) {
        Some((status, _)) if *status == 204 => Response::builder().status(204).body(Body::empty()).unwrap(),
        Some((status, json)) => Response::builder()
            .status(*status)
            .header("content-type", "application/json")
            .body(Body::from(json.to_string()))
            .unwrap(),
        None => Response::builder().status(StatusCode::NOT_FOUND).body(Body::from("not scripted")).unwrap(),
    }
}

fn asset(found: Option<&'static Asset>) -> Response {
    let Some(asset) = found else {
        return Response::builder().status(StatusCode::NOT_FOUND).body(Body::empty()).unwrap();
    };
    Response::builder().header("content-type", asset.content_type).body(Body::from(asset.body)).unwrap()
}

async fn serve(listener: TcpListener, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
