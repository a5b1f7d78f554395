use super::*;

const LIMITS: HeadLimits = HeadLimits { bytes: 500, fields: 5, target: 100 };

fn check(bytes: impl AsRef<[u8]>) -> (usize, Option<GatewayError>) {
    let (sound, refusal) = Framing::new(LIMITS).check(bytes.as_ref());
    (sound, refusal.map(|refusal| refusal.error))
}

fn passes(message: &str) {
    assert_eq!(check(message), (message.len(), None), "{message:?}");
    // However it is cut, the same is let through in the end, and nothing of a head before all of it.
    for size in 1..message.len() {
        let mut framing = Framing::new(LIMITS);
        let (mut let_through, mut held) = (0, 0);
        for piece in message.as_bytes().chunks(size) {
            let (sound, refusal) = framing.check(piece);
            assert_eq!(refusal, None, "{message:?} in pieces of {size}");
            let_through += if sound > 0 { held + sound } else { 0 };
            held = if sound > 0 { piece.len() - sound } else { held + piece.len() };
        }
        assert_eq!((let_through, held), (message.len(), 0), "{message:?} in pieces of {size}");
    }
}

#[test]
fn ordinary_messages_pass_byte_by_byte_and_in_a_row() {
    for message in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /?a=b&c=%2F HTTP/1.0\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost:a\r\nX:\r\nY:  \t z \r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-LENGTH: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 05\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    ] {
        passes(message);
    }
    let unusual = b"GET /caf\xc3\xa9?{} HTTP/1.1\r\nCookie: a=\xff\r\n\r\n";
    assert_eq!(check(unusual), (unusual.len(), None));
}

#[test]
fn what_could_be_read_in_two_ways_is_withheld() {
    let first = "GET /first HTTP/1.1\r\n\r\n";
    for head in [
        "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 4, 4\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: +4\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 4 4\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length : 4\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length:\r\n 4\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\r\nX: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\0b\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\x7fb\r\n\r\n",
        "GET / HTTP/1.1\r\nX\0: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost\r\n\r\n",
        "GET / HTTP/1.1\r\n: a\r\n\r\n",
        "GET / HTTP/1.1\r\nX Y: a\r\n\r\n",
        "GET / HTTP/1.1\r\nX(Y): a\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",
        "GET /  HTTP/1.1\r\n\r\n",
        "GET /\tHTTP/1.1\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n",
        " GET / HTTP/1.1\r\n\r\n",
        "G@T / HTTP/1.1\r\n\r\n",
        "GET\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/1.2\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET / http/1.1\r\n\r\n",
        "GET / HTTP/1.1 \r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    ] {
        let (sound, error) = check(format!("{first}{head}"));
        assert!(matches!(error, Some(GatewayError::BadRequest(_))), "{head:?}: {error:?}");
        assert_eq!(sound, first.len(), "{head:?}: no byte of it is let through");
    }
}

#[test]
fn chunks_are_read_strictly() {
    for chunks in [
        "\r\n",
        "x\r\n",
        "0x5\r\nhello",
        "+5\r\nhello",
        " 5\r\nhello",
        "5 \r\nhello",
        "5\nhello",
        "5\r\nhelloX",
        "5\r\nhello\n",
        "5\r\nhello\r\r",
        "-1\r\n",
        "5;\x01\r\nhello",
        "5;a\nb\r\nhello",
        "fffffffffffffffff\r\n",
        ";x\r\n",
        "0\r\nX Y: 1\r\n\r\n",
        "0\r\n X: 1\r\n\r\n",
        "0\r\nX: 1\n\r\n",
        "0\r\n\n",
    ] {
        let message = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let (_, refusal) = Framing::new(LIMITS).check(message.as_bytes());
        let refusal = refusal.unwrap_or_else(|| panic!("{chunks:?} passed"));
        assert!(refusal.in_body && matches!(refusal.error, GatewayError::BadRequest(_)), "{chunks:?}");
    }
    let long = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;{}\r\nhello", "x".repeat(200));
    assert!(check(long).1.is_some());
}

#[test]
fn what_is_too_much_is_told_apart() {
    let line = format!("GET /{} HTTP/1.1\r\n", "x".repeat(100));
    assert_eq!(check(line).1, Some(GatewayError::TargetTooLong));
    assert_eq!(check(format!("GET /{}", "x".repeat(600))).1, Some(GatewayError::TargetTooLong));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: 1\r\n".repeat(6));
    assert_eq!(check(many).1, Some(GatewayError::HeadTooLarge));
    let large = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(500));
    assert_eq!(check(large).1, Some(GatewayError::HeadTooLarge));
}
