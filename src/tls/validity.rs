//! When a certificate runs out: the one field of it that the TLS library does not tell a server.

use jiff::{civil::DateTime, tz::TimeZone};

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `notAfter` of an X.509 certificate (RFC 5280 §4.1) in Unix seconds; `None` when it cannot be found.
pub(super) fn not_after(certificate: &[u8]) -> Option<i64> {
    let (_, certificate, _) = element(certificate)?;
    let (_, signed, _) = element(certificate)?;
    let (tag, _, after) = element(signed)?;
    // Version is there unless it is 1; then serial number, signature algorithm and issuer.
    let serial = if tag == VERSION { after } else { signed };
    let rest = (0..3).try_fold(serial, |rest, _| element(rest).map(|(_, _, rest)| rest))?;
    let (tag, validity, _) = element(rest)?;
    let (_, _, second) = (tag == SEQUENCE).then(|| element(validity))??;
    let (tag, time, _) = element(second)?;
    seconds(tag, str::from_utf8(time).ok()?)
}

/// One element of DER (X.690 §8.1): its tag, its contents, and what comes behind it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length = bytes.iter().try_fold(0_usize, |sum, byte| {
            sum.checked_mul(256).map(|sum| sum + usize::from(*byte)).filter(|_| bytes.len() <= 4)
        });
        (length?, rest)
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

fn seconds(tag: u8, text: &str) -> Option<i64> {
    let full = match tag {
        // Two digits mean 1950 to 2049 (RFC 5280 §4.1.2.5.1).
        UTC_TIME => format!("{}{text}", if text.get(..2)? < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", full).ok()?;
    Some(TimeZone::UTC.to_timestamp(time).ok()?.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_read_in_both_ways_it_is_written() {
        for (year, expected) in [(2030, 1_893_456_000), (2050, 2_524_608_000), (2049, 2_493_072_000)] {
            let mut params = rcgen::CertificateParams::new(vec!["shop.test".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
            assert_eq!(not_after(certificate.der()), Some(expected), "{year}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let certificate = rcgen::generate_simple_self_signed(vec!["shop.test".to_owned()]).unwrap().cert;
        let der = certificate.der();
        for length in 0..der.len() {
            assert_eq!(not_after(&der[..length]), None);
        }
        assert_eq!(not_after(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
