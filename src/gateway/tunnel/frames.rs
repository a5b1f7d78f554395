//! Where one frame of a WebSocket ends and the next begins (RFC 6455 §5.2).

/// A close frame with status 1001.
pub(super) const GOING_AWAY: [u8; 4] = [0x88, 0x02, 0x03, 0xe9];

/// Follows one direction of a tunnel.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: [u8; 10],
    /// How much of a head has come.
    filled: usize,
    /// Of the payload, how much is still to come.
    left: u64,
}

impl Frames {
    /// Whether a frame may begin here.
    pub(super) const fn is_between(&self) -> bool {
        self.filled == 0 && self.left == 0
    }

    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= u64::try_from(skipped).unwrap_or_default();
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            if let (Some(space), Some((&byte, rest))) = (self.head.get_mut(self.filled), bytes.split_first()) {
                *space = byte;
                self.filled += 1;
                bytes = rest;
            }
            if let Some(length) = self.length() {
                self.left = length;
                self.filled = 0;
            }
        }
    }

    /// What follows the head, once it is known: a mask counts as part of it.
    fn length(&self) -> Option<u64> {
        let [_, second, extended @ ..] = self.head;
        let length = match (self.filled, second & 0x7f) {
            (2, short @ ..126) => u64::from(short),
            (4, 126) => u64::from(u16::from_be_bytes([extended[0], extended[1]])),
            (10, 127) => u64::from_be_bytes(extended),
            _ => return None,
        };
        Some(if second & 0x80 == 0 { length } else { length.saturating_add(4) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_length_are_followed_however_they_are_cut() {
        let frame = |head: &[u8], length: usize| [head, &vec![0xff; length]].concat();
        let frames = [
            frame(&[0x81, 0], 0),
            frame(&[0x81, 125], 125),
            frame(&[0x81, 0x80 | 5, 1, 2, 3, 4], 5),
            frame(&[0x82, 126, 0x01, 0x00], 256),
            frame(&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0], 65_536),
            GOING_AWAY.to_vec(),
        ];
        for size in [1, 2, 3, 7, 100_000] {
            let mut followed = Frames::default();
            for frame in &frames {
                for piece in frame.chunks(size) {
                    followed.follow(piece);
                }
                assert!(followed.is_between(), "{} bytes in pieces of {size}", frame.len());
                followed.follow(&frame[..1]);
                assert!(!followed.is_between());
                followed.follow(&frame[1..]);
            }
        }
        let mut several = Frames::default();
        several.follow(&frames.concat());
        assert!(several.is_between());
    }
}
