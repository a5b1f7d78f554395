//! Files that travel inside the binary. Their names carry a hash of their content, so a browser may keep them for ever
//! and a new release never meets an old file.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

/// What every page allows: nothing but the site's own style, script and calls. No inline code, no framing.
pub const PAGE_CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// One embedded file. Serve with `Cache-Control: public, max-age=31536000, immutable` and `Vary: Accept-Encoding`.
#[derive(Debug)]
pub struct Asset {
    /// The content.
    pub body: &'static [u8],
    /// The content compressed, `None` where that does not pay.
    pub gzip: Option<Vec<u8>>,
    /// Value of `Content-Type`.
    pub content_type: &'static str,
    /// Value of `ETag`: weak, because both encodings carry it (RFC 9110 §8.8.1).
    pub etag: String,
    logical: &'static str,
    file_name: String,
}

/// The files of one part of the system.
#[derive(Debug)]
pub struct Bundle(Vec<Asset>);

impl Bundle {
    /// Hashes and compresses `(logical name, content)` pairs. Costs a millisecond or two: do it once.
    pub fn new(files: &[(&'static str, &'static str)]) -> Self {
        Self(files.iter().map(|(logical, text)| Asset::new(logical, text.as_bytes())).collect())
    }

    /// The file a URL names, `None` for an unknown or outdated name.
    pub fn find(&self, file_name: &str) -> Option<&Asset> {
        self.0.iter().find(|asset| asset.file_name == file_name)
    }

    /// `room.css` → `room.1f2e3d4c5b6a7988.css`. An unknown name comes back as it is, and will answer 404.
    pub fn file_name<'a>(&'a self, logical: &'a str) -> &'a str {
        self.0.iter().find(|asset| asset.logical == logical).map_or(logical, |asset| &asset.file_name)
    }
}

impl Asset {
    fn new(logical: &'static str, body: &'static [u8]) -> Self {
        let hash = short_hash(body);
        let (stem, extension) = logical.rsplit_once('.').unwrap_or((logical, "bin"));
        Self {
            body,
            gzip: gzip(body).filter(|small| small.len() < body.len()),
            content_type: content_type(extension),
            etag: format!("W/\"{hash}\""),
            logical,
            file_name: format!("{stem}.{hash}.{extension}"),
        }
    }
}

fn short_hash(body: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, body);
    digest.as_ref().iter().take(8).fold(String::new(), |hash, byte| format!("{hash}{byte:02x}"))
}

fn gzip(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

fn content_type(extension: &str) -> &'static str {
    match extension {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
