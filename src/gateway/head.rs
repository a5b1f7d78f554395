//! Refuses request heads that two readers might understand differently, and brings the rest into one form.

use http::{
    HeaderValue, Method, Uri, Version,
    header::HOST,
    request::Parts,
    uri::{Authority, PathAndQuery},
};

use super::{GatewayError, Limits};

/// Checks `head` and rewrites it so that everything behind sees one form: an origin-form target, and one valid
/// `Host` (which only HTTP/1.0 may lack).
pub(super) fn normalise(head: &mut Parts, limits: &Limits) -> Result<(), GatewayError> {
    if head.method == Method::CONNECT || head.method == Method::TRACE {
        return Err(GatewayError::MethodRefused);
    }
    if target_length(head) > limits.target {
        return Err(GatewayError::TargetTooLong);
    }
    if size(head) > limits.head || head.headers.len() > limits.headers {
        return Err(GatewayError::HeadTooLarge);
    }
    let named = host(head)?;
    if let Some(target) = head.uri.authority().cloned() {
        // HTTP/2 always names the authority; HTTP/1.1 does in absolute-form, as to a forward proxy. RFC 9112 §3.2.2
        // has `Host` ignored then, but what checked `Host` before us would have checked something else.
        require_http(&head.uri, head.version)?;
        let target = authority(target.as_str().as_bytes())?;
        match named {
            Some(named) if !same(&named, &target, head.uri.scheme_str()) => return Err(GatewayError::Misdirected),
            Some(_) => {}
            None => {
                let value = HeaderValue::from_str(target.as_str());
                head.headers.insert(HOST, value.map_err(|_| GatewayError::BadRequest("the authority is invalid"))?);
            }
        }
    }
    head.uri = Uri::from(origin_form(head)?);
    Ok(())
}

fn target_length(head: &Parts) -> usize {
    head.uri.path_and_query().map_or(0, |target| target.as_str().len())
}

fn size(head: &Parts) -> usize {
    let target = target_length(head);
    // Four bytes a field: colon, space, CR, LF.
    head.headers.iter().fold(target, |sum, (name, value)| sum + name.as_str().len() + value.len() + 4)
}

fn host(head: &Parts) -> Result<Option<Authority>, GatewayError> {
    let mut hosts = head.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => Err(GatewayError::BadRequest("more than one Host")),
        (Some(only), None) => authority(only.as_bytes()).map(Some),
        (None, _) if head.version == Version::HTTP_11 => Err(GatewayError::BadRequest("no Host")),
        (None, _) => Ok(None),
    }
}

/// A host with or without a port, and nothing that only looks like one.
pub(super) fn authority(bytes: &[u8]) -> Result<Authority, GatewayError> {
    let invalid = GatewayError::BadRequest("the host is invalid");
    let authority = Authority::try_from(bytes).map_err(|_| invalid)?;
    let port_is_sound = match authority.as_str().rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => authority.port_u16().is_some() || port.is_empty(),
        _ => true,
    };
    // User information in front of the host is how links lie about where they lead.
    if bytes.contains(&b'@') || authority.host().is_empty() || !port_is_sound { Err(invalid) } else { Ok(authority) }
}

fn require_http(uri: &Uri, version: Version) -> Result<(), GatewayError> {
    match uri.scheme_str() {
        Some("http" | "https") => Ok(()),
        None if version == Version::HTTP_2 => Ok(()),
        _ => Err(GatewayError::BadRequest("the target is no path")),
    }
}

fn same(one: &Authority, other: &Authority, scheme: Option<&str>) -> bool {
    let default = if scheme == Some("https") { 443 } else { 80 };
    one.host().eq_ignore_ascii_case(other.host())
        && one.port_u16().unwrap_or(default) == other.port_u16().unwrap_or(default)
}

fn origin_form(head: &Parts) -> Result<PathAndQuery, GatewayError> {
    let target = head.uri.path_and_query().ok_or(GatewayError::BadRequest("the target has no path"))?;
    let fits = target.as_str().starts_with('/') || (target.as_str() == "*" && head.method == Method::OPTIONS);
    if fits {
        Ok(target.clone())
    } else if target.as_str().starts_with('?') {
        // Only absolute-form can leave the path out: `http://shop.test?q`.
        PathAndQuery::try_from(format!("/{target}")).map_err(|_| GatewayError::BadRequest("the target is invalid"))
    } else {
        Err(GatewayError::BadRequest("the target is no path"))
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn normalised(method: &str, target: &str, hosts: &[&[u8]]) -> Result<(String, Option<String>), GatewayError> {
        let mut request = Request::builder().method(method).uri(target).version(Version::HTTP_11);
        for host in hosts {
            request = request.header(HOST, HeaderValue::from_bytes(host).unwrap());
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        normalise(&mut head, &Limits { head: 1_000, target: 500, ..Limits::default() })?;
        let host = head.headers.get(HOST).map(|host| host.to_str().unwrap().to_owned());
        Ok((head.uri.to_string(), host))
    }

    #[test]
    fn the_path_stays_as_it_was_sent() {
        for path in ["/", "//shop/", "/a%2Fb/%2e%2e/c?x=%ff&y", "/?", "/;a=b", "/a?b?c"] {
            assert_eq!(normalised("GET", path, &[b"shop.test"]).unwrap().0, path);
        }
    }

    #[test]
    fn absolute_form_must_agree_with_host() {
        assert_eq!(normalised("GET", "http://Shop.test:80/a?b", &[b"shop.test"]).unwrap().0, "/a?b");
        assert_eq!(normalised("GET", "http://shop.test", &[b"shop.test"]).unwrap().0, "/");
        assert_eq!(normalised("GET", "http://evil.test/a", &[b"shop.test"]), Err(GatewayError::Misdirected));
        assert_eq!(normalised("GET", "http://shop.test:81/a", &[b"shop.test"]), Err(GatewayError::Misdirected));
    }

    #[test]
    fn hosts_that_could_mislead_are_refused() {
        let wrong: [&[&[u8]]; 8] = [
            &[],
            &[b"a", b"a"],
            &[b"a b"],
            &[b""],
            &[b"shop.test@evil.test"],
            &[b"shop.test:x"],
            &[b"shop.test:99999"],
            &[b"shop.test/evil"],
        ];
        for hosts in wrong {
            assert!(matches!(normalised("GET", "/", hosts), Err(GatewayError::BadRequest(_))), "{hosts:?}");
        }
        for host in ["shop.test", "shop.test:8080", "[::1]:8080", "[::1]", "127.0.0.1"] {
            assert!(normalised("GET", "/", &[host.as_bytes()]).is_ok(), "{host}");
        }
    }

    #[test]
    fn no_forward_proxy_and_no_trace() {
        assert_eq!(normalised("CONNECT", "evil.test:443", &[b"evil.test:443"]), Err(GatewayError::MethodRefused));
        assert_eq!(normalised("TRACE", "/", &[b"shop.test"]), Err(GatewayError::MethodRefused));
        assert!(normalised("GET", "shop.test", &[b"shop.test"]).is_err());
        assert!(normalised("GET", "*", &[b"shop.test"]).is_err());
        assert_eq!(normalised("OPTIONS", "*", &[b"shop.test"]).unwrap().0, "*");
    }

    #[test]
    fn a_large_head_is_told_apart() {
        let path = format!("/{}", "x".repeat(500));
        assert_eq!(normalised("GET", &path, &[b"shop.test"]), Err(GatewayError::TargetTooLong));
        let host = "x".repeat(1_000);
        assert_eq!(normalised("GET", "/", &[host.as_bytes()]), Err(GatewayError::HeadTooLarge));
    }
}
