//! Lets through only HTTP/1 of which everybody reads the same beginning and end.
//!
//! Between two programs that read a message differently a second request can hide (RFC 9112 §11.2). What HTTP's parser is
//! lenient about, and what it corrects on the way, is refused here before it sees it: bare LF and CR, folded lines, NUL and
//! other control characters, spaces around names, a length beside a transfer coding, codings other than `chunked`, sizes
//! that are no plain numbers. A refused head is withheld in full, so that no part of it is acted upon.

mod chunks;
mod head;

use self::{chunks::Chunks, head::Head};
use super::GatewayError;

/// How much of a head is borne.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadLimits {
    /// Most bytes, line ends included.
    pub(super) bytes: usize,
    /// Most header fields; of trailers the same again.
    pub(super) fields: usize,
    /// Most bytes of the request's target.
    pub(super) target: usize,
}

/// Follows the bytes of one connection.
#[derive(Debug)]
pub(super) struct Framing {
    limits: HeadLimits,
    part: Part,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
}

#[derive(Debug)]
enum Part {
    Head(Head),
    /// A body with so many bytes to come.
    Counted(u64),
    Chunked(Chunks),
    Trailers(Head),
}

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    None,
    Counted(u64),
    Chunked,
}

/// What is not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) error: GatewayError,
    /// Whether the request has begun already.
    pub(super) in_body: bool,
}

impl Framing {
    pub(super) fn new(limits: HeadLimits) -> Self {
        Self { limits, part: Part::Head(Head::default()), line: Vec::new() }
    }

    /// Looks at the next bytes. How many of them HTTP may see now (an incomplete head is kept from it), and why it may never
    /// see the rest.
    pub(super) fn check(&mut self, bytes: &[u8]) -> (usize, Option<Refusal>) {
        let (mut at, mut sound) = (0, 0);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let in_body = !matches!(self.part, Part::Head(_));
            match self.step(rest) {
                Ok(taken) => at += taken,
                Err(error) => return (sound, Some(Refusal { error, in_body })),
            }
            let amid_head = matches!(&self.part, Part::Head(head) if head.has_begun() || !self.line.is_empty());
            if !amid_head {
                sound = at;
            }
        }
        (sound, None)
    }

    /// How many bytes made one more line, or piece of a body.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, GatewayError> {
        match &mut self.part {
            Part::Counted(left) => {
                let taken = u64::try_from(bytes.len()).unwrap_or(u64::MAX).min(*left);
                *left -= taken;
                if *left == 0 {
                    self.part = Part::Head(Head::default());
                }
                Ok(usize::try_from(taken).unwrap_or(bytes.len()))
            }
            Part::Chunked(chunks) => {
                let taken = chunks.take(bytes)?;
                if chunks.is_last() {
                    self.part = Part::Trailers(Head::default());
                }
                Ok(taken)
            }
            Part::Head(_) | Part::Trailers(_) => self.take_line(bytes),
        }
    }

    fn take_line(&mut self, bytes: &[u8]) -> Result<usize, GatewayError> {
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let (Part::Head(head) | Part::Trailers(head)) = &mut self.part else { return Ok(0) };
        head.grow(piece.len(), self.limits)?;
        if end.is_none() {
            self.line.extend_from_slice(piece);
            head::check_beginning(&self.line)?;
            return Ok(piece.len());
        }
        let is_trailer = matches!(self.part, Part::Trailers(_));
        let carried;
        let line = if self.line.is_empty() {
            piece
        } else {
            self.line.extend_from_slice(piece);
            carried = std::mem::take(&mut self.line);
            &carried
        };
        let (Part::Head(head) | Part::Trailers(head)) = &mut self.part else { return Ok(0) };
        let ended = if is_trailer { head.trailer(line, self.limits)? } else { head.line(line, self.limits)? };
        match ended {
            None => {}
            Some(Body::None) => self.part = Part::Head(Head::default()),
            Some(Body::Counted(length)) => self.part = Part::Counted(length),
            Some(Body::Chunked) => self.part = Part::Chunked(Chunks::default()),
        }
        Ok(piece.len())
    }
}

#[cfg(test)]
mod tests;
