//! A headless Chromium of the test's own, driven through chromedriver; both stop with the value.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use fantoccini::{Client, ClientBuilder, Locator};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioExecutor};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// How long a page gets to do what a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Browser {
    pub client: Client,
    driver: Child,
    port: u16,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// A browser with a viewport of this many CSS pixels. Narrower than 700 it is a phone: touch, two device pixels each.
    pub async fn start(width: u32, height: u32, dark: bool) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let profile = tempfile::tempdir().unwrap();
        let driver = Command::new("chromedriver")
            .args([&format!("--port={port}"), "--log-level=OFF"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect(
                "chromedriver is not installed: apt-get install chromium chromium-driver, or run tests/run, which does",
            );
        let client = connect(port, profile.path().display()).await;
        let browser = Self { client, driver, port, _profile: profile };
        browser.view(width, height, dark).await;
        browser
    }

    /// Changes the viewport and the colour scheme.
    pub async fn view(&self, width: u32, height: u32, dark: bool) {
        let phone = width < 700;
        let scale = if phone { 2 } else { 1 };
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone });
        self.cdp("Emulation.setDeviceMetricsOverride", metrics).await;
        self.cdp("Emulation.setTouchEmulationEnabled", json!({ "enabled": phone })).await;
        self.scheme(dark).await;
    }

    /// Changes the colour scheme.
    pub async fn scheme(&self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        // A picture taken in the middle of a transition shows colours that no page has.
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme }, { "name": "prefers-reduced-motion", "value": "reduce" },
        ]});
        self.cdp("Emulation.setEmulatedMedia", features).await;
    }

    /// Turns JavaScript off or on for the pages loaded from now on.
    pub async fn scripts(&self, on: bool) {
        self.cdp("Emulation.setScriptExecutionDisabled", json!({ "value": !on })).await;
    }

    /// Puts a picture of the viewport into `target/screenshots/{name}.png`.
    pub async fn screenshot(&self, name: &str) {
        let taken = self.cdp("Page.captureScreenshot", json!({ "format": "png" })).await;
        let png = STANDARD.decode(taken["value"]["data"].as_str().expect("Chromium gives a picture")).unwrap();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), png).unwrap();
    }

    /// The same picture twice: `{name}-light` and `{name}-dark`.
    pub async fn screenshots(&self, name: &str) {
        for (scheme, dark) in [("dark", true), ("light", false)] {
            self.scheme(dark).await;
            self.screenshot(&format!("{name}-{scheme}")).await;
        }
    }

    /// Who the visitor is, by the queue cookie: its `sub`.
    pub async fn visitor(&self) -> String {
        let cookie = self.client.get_named_cookie("stanchion_q_main").await.expect("a place is in the cookie");
        let payload = URL_SAFE_NO_PAD.decode(cookie.value().split('.').nth(1).unwrap()).unwrap();
        serde_json::from_slice::<Value>(&payload).unwrap()["sub"].as_str().unwrap().to_owned()
    }

    /// Evaluates a JavaScript expression in the page.
    pub async fn js(&self, expression: &str) -> Value {
        self.client.execute(&format!("return {expression}"), vec![]).await.unwrap()
    }

    /// Waits until a JavaScript expression is true; says what the page shows when it never becomes so.
    pub async fn until(&self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Between two pages there is nothing to ask; that is not an answer.
            let answer = self.client.execute(&format!("return !!({expression})"), vec![]).await;
            if answer.is_ok_and(|value| value == Value::Bool(true)) {
                return;
            }
            if Instant::now() > deadline {
                let shown = self.js("document.body.innerText").await;
                panic!("never true: {expression}\nthe page shows: {}", shown.as_str().unwrap_or_default());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn click(&self, selector: &str) {
        self.client.find(Locator::Css(selector)).await.unwrap().click().await.unwrap();
    }

    /// One command of Chromium's developer tools.
    pub async fn cdp(&self, command: &str, params: Value) -> Value {
        let session = self.client.session_id().await.unwrap().unwrap();
        let body = json!({ "cmd": command, "params": params }).to_string();
        let request = http::Request::post(format!("http://127.0.0.1:{}/session/{session}/goog/cdp/execute", self.port))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
        let answer = timeout(PATIENCE, client.request(request)).await.unwrap().unwrap();
        let status = answer.status();
        let body = timeout(PATIENCE, answer.into_body().collect()).await.unwrap().unwrap().to_bytes();
        assert!(status.is_success(), "{command}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// Ends the session, so that Chromium itself goes too.
    pub async fn close(self) {
        let _ = self.client.clone().close().await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // chromedriver ends its Chromium when it is asked to stop, but not when it is killed.
        let _ = std::net::TcpStream::connect(("127.0.0.1", self.port)).and_then(|mut stream| {
            std::io::Write::write_all(&mut stream, b"GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            std::io::Read::read(&mut stream, &mut [0; 512])
        });
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

async fn connect(port: u16, profile: impl std::fmt::Display) -> Client {
    let options = json!({ "args": [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
        "--no-first-run", "--hide-scrollbars", format!("--user-data-dir={profile}"),
    ]});
    let capabilities = [("goog:chromeOptions".to_owned(), options)].into_iter().collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(serde_json::Map::clone(&capabilities));
        match builder.connect(&format!("http://127.0.0.1:{port}")).await {
            Ok(client) => return client,
            Err(error) if Instant::now() > deadline => panic!("chromedriver gives no session: {error}"),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}
