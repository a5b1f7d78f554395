//! The lines of a request's head.

use http::Uri;

use super::{Body, HeadLimits};
use crate::gateway::GatewayError;

/// What is known of a head so far.
#[derive(Debug, Default)]
pub(super) struct Head {
    bytes: usize,
    fields: usize,
    blank_lines: usize,
    /// Set by the request line.
    is_http_11: Option<bool>,
    length: Option<u64>,
    is_chunked: bool,
}

type Refused<T> = Result<T, GatewayError>;

const fn malformed<T>(why: &'static str) -> Refused<T> {
    Err(GatewayError::BadRequest(why))
}

impl Head {
    /// Whether any line has come.
    pub(super) const fn has_begun(&self) -> bool {
        self.bytes > 0
    }

    /// Counts bytes before they are looked at.
    pub(super) fn grow(&mut self, bytes: usize, limits: HeadLimits) -> Refused<()> {
        self.bytes += bytes;
        match self.is_http_11 {
            _ if self.bytes <= limits.bytes => Ok(()),
            // Nothing but the target can be so long that the first line does not end.
            None => Err(GatewayError::TargetTooLong),
            Some(_) => Err(GatewayError::HeadTooLarge),
        }
    }

    /// Reads one line, its end included; says what follows when it was the last.
    pub(super) fn line(&mut self, line: &[u8], limits: HeadLimits) -> Refused<Option<Body>> {
        let line = text_of(line)?;
        if self.is_http_11.is_none() {
            // Some old clients end a body with an empty line of their own (RFC 9112 §2.2).
            if line.is_empty() && self.blank_lines == 0 {
                self.blank_lines += 1;
                return Ok(None);
            }
            self.is_http_11 = Some(request_line(line, limits)?);
            return Ok(None);
        }
        if line.is_empty() {
            return self.end().map(Some);
        }
        self.field(line, limits)?;
        Ok(None)
    }

    /// Reads a line behind the last chunk; something follows when it was the last.
    pub(super) fn trailer(&mut self, line: &[u8], limits: HeadLimits) -> Refused<Option<Body>> {
        let line = text_of(line)?;
        if line.is_empty() {
            return Ok(Some(Body::None));
        }
        self.count_field(limits)?;
        split(line)?;
        Ok(None)
    }

    fn count_field(&mut self, limits: HeadLimits) -> Refused<()> {
        self.fields += 1;
        if self.fields > limits.fields { Err(GatewayError::HeadTooLarge) } else { Ok(()) }
    }

    fn field(&mut self, line: &[u8], limits: HeadLimits) -> Refused<()> {
        self.count_field(limits)?;
        let (name, value) = split(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = length_of(value)?;
            if self.length.is_some_and(|before| before != length) {
                return malformed("two lengths that disagree");
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return malformed("a transfer coding other than chunked, once");
            }
            self.is_chunked = true;
        }
        Ok(())
    }

    fn end(&self) -> Refused<Body> {
        match (self.is_chunked, self.length) {
            (true, Some(_)) => malformed("both a length and a transfer coding"),
            (true, None) if self.is_http_11 == Some(true) => Ok(Body::Chunked),
            (true, None) => malformed("a transfer coding in HTTP/1.0"),
            (false, None | Some(0)) => Ok(Body::None),
            (false, Some(length)) => Ok(Body::Counted(length)),
        }
    }
}

/// A line without its CRLF, if that is how it ends and nothing in it could pass for an end.
fn text_of(line: &[u8]) -> Refused<&[u8]> {
    let Some(line) = line.strip_suffix(b"\r\n") else { return malformed("a line that does not end with CR LF") };
    if line.iter().any(|byte| is_control(*byte)) {
        return malformed("a control character");
    }
    Ok(line)
}

/// Refuses early what no end of the line could mend.
pub(super) fn check_beginning(line: &[u8]) -> Refused<()> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().any(|byte| is_control(*byte)) { malformed("a control character") } else { Ok(()) }
}

const fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// `METHOD target HTTP/1.x` with single spaces; whether it is HTTP/1.1.
fn request_line(line: &[u8], limits: HeadLimits) -> Refused<bool> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return malformed("the first line is no request");
    };
    if !is_token(method) || target.is_empty() || target.contains(&b'\t') {
        return malformed("the first line is no request");
    }
    if target.len() > limits.target {
        return Err(GatewayError::TargetTooLong);
    }
    // Only what is out of the ordinary is read twice.
    let is_plain = target.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/?&=%.-_~+:,;@!*'()$".contains(byte));
    if !is_plain && Uri::try_from(target).is_err() {
        return malformed("the target is invalid");
    }
    match version {
        b"HTTP/1.1" => Ok(true),
        b"HTTP/1.0" => Ok(false),
        _ => malformed("a version of HTTP that is not spoken here"),
    }
}

/// Name and value of a field.
fn split(line: &[u8]) -> Refused<(&[u8], &[u8])> {
    if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        return malformed("a header line that begins with a space");
    }
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        return malformed("a header line without a colon");
    };
    let (name, value) = (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
    if !is_token(name) {
        return malformed("a header name with other characters than a name has");
    }
    Ok((name, value.trim_ascii()))
}

fn is_token(bytes: &[u8]) -> bool {
    let is_one = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_one)
}

fn length_of(value: &[u8]) -> Refused<u64> {
    // Eighteen digits are more than anybody sends, and fewer than overflow anything.
    let is_plain = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let length = str::from_utf8(value).ok().filter(|_| is_plain).and_then(|digits| digits.parse().ok());
    length.map_or_else(|| malformed("a length that is no number"), Ok)
}
