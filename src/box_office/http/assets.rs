//! Styles and scripts of the pages: named by their content, so a cache may keep them for ever.

use axum::{
    extract::Path,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};

use super::problem::Problem;
use crate::box_office::pages;

/// `GET /box-office/assets/{file}`.
pub async fn show(Path(file): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let asset = pages::asset(&file).ok_or_else(|| {
        Problem::not_found("There is no such file; the page that named it is older than this server.")
    })?;
    let has = |name, wanted: &str| {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).any(|value: &str| value.contains(wanted))
    };
    let mut response = if has(header::IF_NONE_MATCH, &asset.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match &asset.gzip {
            Some(gzip) if has(header::ACCEPT_ENCODING, "gzip") => {
                ([(header::CONTENT_ENCODING, "gzip")], gzip.clone()).into_response()
            }
            _ => asset.body.into_response(),
        }
    };
    let fixed = response.headers_mut();
    fixed.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    fixed.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    fixed.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Ok(etag) = HeaderValue::from_str(&asset.etag) {
        fixed.insert(header::ETAG, etag);
    }
    Ok(response)
}
