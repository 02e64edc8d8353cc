//! Addresses of links, relative to a page (RFC 3986, section 5.2).

/// Resolves `href` on a page at `base`, an absolute http(s) address, into an absolute address. The result is not
/// checked.
pub fn joined(base: &str, href: &str) -> String {
    if href.is_empty() {
        return base.to_owned();
    }
    let (scheme, rest) = base.split_once("://").unwrap_or(("http", base));
    let href = match scheme_of(href) {
        // An address with the page's own scheme but no host is relative, as in all browsers.
        Some(own_scheme)
            if own_scheme.eq_ignore_ascii_case(scheme) && !href[own_scheme.len() + 1..].starts_with("//") =>
        {
            &href[own_scheme.len() + 1..]
        }
        Some(_) => return href.to_owned(),
        None => href,
    };
    if href.starts_with("//") {
        return format!("{scheme}:{href}");
    }
    let before = rest.split('#').next().unwrap_or_default();
    if href.starts_with('#') {
        return format!("{scheme}://{before}{href}");
    }
    let path_and_host = before.split('?').next().unwrap_or_default();
    if href.starts_with('?') {
        return format!("{scheme}://{path_and_host}{href}");
    }
    let (host, path) = match path_and_host.find('/') {
        Some(at) => path_and_host.split_at(at),
        None => (path_and_host, "/"),
    };
    let end = href.find(['?', '#']).unwrap_or(href.len());
    let (way, tail) = href.split_at(end);
    if way.starts_with('/') {
        return format!("{scheme}://{host}{}{tail}", without_dots(way));
    }
    let folder = &path[..=path.rfind('/').unwrap_or(0)];
    format!("{scheme}://{host}{}{tail}", without_dots(&format!("{folder}{way}")))
}

fn scheme_of(href: &str) -> Option<&str> {
    let (scheme, _) = href.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.'));
    is_scheme.then_some(scheme)
}

fn without_dots(path: &str) -> String {
    if !path.contains("/.") {
        return path.to_owned();
    }
    let mut segments: Vec<&str> = Vec::new();
    let last = path.rsplit('/').next().unwrap_or_default();
    for segment in path.split('/') {
        match segment {
            ".." => {
                if segments.len() > 1 {
                    segments.pop();
                }
            }
            "." => {}
            _ => segments.push(segment),
        }
    }
    if matches!(last, "." | "..") {
        segments.push("");
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::joined;

    /// The examples of RFC 3986, section 5.4, that apply to the web.
    #[test]
    fn addresses_are_joined_as_the_standard_has_it() {
        let base = "http://a/b/c/d;p?q";
        for (href, wanted) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"),
            ("g?y#s", "http://a/b/c/g?y#s"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http:g", "http://a/b/c/g"),
            ("http://x/y", "http://x/y"),
        ] {
            assert_eq!(joined(base, href), wanted, "{href}");
        }
        assert_eq!(joined("http://a", "g"), "http://a/g");
    }
}
