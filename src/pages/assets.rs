//! The waiting page's style and script.

use std::sync::LazyLock;

pub use crate::embed::Asset;
use crate::embed::Bundle;

static BUNDLE: LazyLock<Bundle> = LazyLock::new(|| {
    Bundle::new(&[
        // One file for one request: the shared base, then what only this page needs.
        ("room.css", concat!(include_str!("../../static/base.css"), include_str!("../../static/room.css"))),
        ("room.js", include_str!("../../static/room.js")),
    ])
});

/// The asset with this hashed file name (the last segment of [`url`]); `None` answers 404.
pub fn find(file_name: &str) -> Option<&'static Asset> {
    BUNDLE.find(file_name)
}

/// Where a page finds an asset: `url("/__room", "room.css")` → `/__room/assets/room.1f2e3d4c5b6a7988.css`.
pub fn url(prefix: &str, logical_name: &str) -> String {
    format!("{prefix}/assets/{}", BUNDLE.file_name(logical_name))
}
