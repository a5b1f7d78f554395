//! Style and script of the waiting page. The file's name carries its content's hash, so a copy is good for ever.

use axum::{
    body::Body,
    extract::{Path, rejection::PathRejection},
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{
        ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
        X_CONTENT_TYPE_OPTIONS,
    },
};

use crate::{gateway::problem::Problem, pages::assets};

/// One asset.
pub(super) async fn serve(file: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Result<Response, Problem> {
    let asset = file.ok().and_then(|Path(file)| assets::find(&file)).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "there is no such file, or it is of another version", "Reload the page.")
    })?;
    let is_held = headers.get(IF_NONE_MATCH).is_some_and(|held| held.as_bytes() == asset.etag.as_bytes());
    let mut answer = if is_held {
        StatusCode::NOT_MODIFIED.into_response()
    } else if let Some(gzip) = asset.gzip.as_ref().filter(|_| accepts_gzip(&headers)) {
        ([(CONTENT_ENCODING, "gzip")], Body::from(gzip.clone())).into_response()
    } else {
        Body::from(asset.body).into_response()
    };
    let fields = answer.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    fields.insert(VARY, HeaderValue::from_static("accept-encoding"));
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(etag) = HeaderValue::from_str(&asset.etag) {
        fields.insert(ETAG, etag);
    }
    Ok(answer)
}

/// Whether gzip is named, and not with a quality of nought (RFC 9110 §12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    codings.flat_map(|text| text.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"))
            && parts.all(|part| part.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) != Some(0.0))
    })
}
