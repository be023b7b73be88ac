//! The host of a URL and the domain of an e-mail address, read strictly.
//!
//! Programs disagree about unusual addresses: some skip a tab in a host, or read `own.com@evil.com` as the host `evil.com`. Such an
//! address has no host here, so a condition about it has no result.

use std::borrow::Cow;

/// The longest URL or address, in bytes.
const MAX_ADDRESS_BYTES: usize = 2048;

/// The longest name of a host, in bytes.
const MAX_HOST_BYTES: usize = 253;

/// The longest label of a host's name, and the longest part of an e-mail address before its `@`, in bytes.
const MAX_LABEL_BYTES: usize = 63;

/// Returns whether `host()` or `domain()` can return a text.
pub fn is_host(text: &str) -> bool {
    host_name(text).as_deref() == Some(text)
}

/// Returns whether a result of `host()` or `domain()` can contain a text.
pub fn is_part_of_host(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    text.bytes().all(is_plain)
}

/// Returns the host of an absolute URL with the scheme `http` or `https`, in lower case, without port and final dot.
///
/// Returns `None` for everything else: a URL without scheme, with a user name, with an IPv6 address, with a host outside of ASCII, or with
/// a blank, a control character or a backslash anywhere.
pub(crate) fn host(url: &str) -> Option<Cow<'_, str>> {
    let is_plain = |byte: u8| byte > b' ' && byte != 0x7f && byte != b'\\';
    if url.len() > MAX_ADDRESS_BYTES || !url.bytes().all(is_plain) {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let name = match authority.split_once(':') {
        Some((name, port)) => {
            let is_port = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
            is_port.then_some(name)?
        }
        None => authority,
    };
    host_name(name)
}

/// Returns the domain of an e-mail address, in lower case, without final dot.
///
/// Returns `None` for everything but one plain address: a list of addresses, an address with a display name, quotes, comments or a route.
pub(crate) fn domain(address: &str) -> Option<Cow<'_, str>> {
    let (local, domain) = address.split_once('@')?;
    let is_atom = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"#$&'*+-/=?^_`{|}~".contains(&byte))
    };
    if local.len() > MAX_LABEL_BYTES || !local.split('.').all(is_atom) {
        return None;
    }
    host_name(domain)
}

/// Returns the name of a host in lower case. A name whose last label is a number must be an IPv4 address in its usual form.
fn host_name(name: &str) -> Option<Cow<'_, str>> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > MAX_HOST_BYTES || !name.split('.').all(is_label) {
        return None;
    }
    let last = name.rsplit('.').next()?;
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X");
    (!is_number || is_ipv4(name)).then(|| lower(name))
}

/// Returns a text with its ASCII letters in lower case.
pub(crate) fn lower(text: &str) -> Cow<'_, str> {
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(text) } else { Cow::Owned(text.to_ascii_lowercase()) }
}

fn is_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_LABEL_BYTES).contains(&label.len())
        && label.bytes().all(is_inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_ipv4(name: &str) -> bool {
    let is_octet = |part: &str| part.parse::<u8>().is_ok_and(|octet| octet.to_string() == part);
    name.split('.').count() == 4 && name.split('.').all(is_octet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::in_capitals("HTTPS://Bit.ly/x", "bit.ly")]
    #[case::with_a_port("http://own.com:8080", "own.com")]
    #[case::with_a_final_dot("https://own.com./", "own.com")]
    #[case::with_a_query("https://own.com?next=https://evil.com/@", "own.com")]
    #[case::with_a_fragment("https://own.com#@evil.com", "own.com")]
    #[case::one_label("http://localhost/", "localhost")]
    #[case::an_ipv4_address("http://10.0.0.1/", "10.0.0.1")]
    #[case::in_punycode("https://xn--bcher-kva.example/", "xn--bcher-kva.example")]
    fn the_host_of_a_url_is_in_lower_case(#[case] url: &str, #[case] expected: &str) {
        assert_eq!(host(url).as_deref(), Some(expected));
    }

    #[rstest]
    #[case::a_host("own.com", true, true)]
    #[case::an_address("10.0.0.1", true, true)]
    #[case::the_end_of_a_host(".own.com", false, true)]
    #[case::in_capitals("Own.com", false, false)]
    #[case::with_an_at_sign("@own.com", false, false)]
    #[case::a_url("https://own.com", false, false)]
    #[case::a_blank("own.com ", false, false)]
    #[case::nothing("", false, true)]
    fn a_text_may_be_a_host_or_a_part_of_one(#[case] text: &str, #[case] whole: bool, #[case] part: bool) {
        assert_eq!((is_host(text), is_part_of_host(text)), (whole, part));
    }

    #[rstest]
    #[case::without_scheme("www.x.com")]
    #[case::a_bare_domain("x.com/path")]
    #[case::without_scheme_but_slashes("//x.com/")]
    #[case::one_slash("https:/x.com/")]
    #[case::another_scheme("javascript://own.com/%0aalert(1)")]
    #[case::a_user("https://own.com@evil.com/")]
    #[case::a_user_and_password("https://own.com:80@evil.com/")]
    #[case::a_backslash(r"https://evil.com\@own.com/")]
    #[case::a_backslash_as_slash(r"https:\\evil.com/")]
    #[case::a_tab("https://ev\til.com/")]
    #[case::a_blank_before(" https://own.com/")]
    #[case::a_percent("https://own%2ecom/")]
    #[case::other_letters("https://оwn.com/")]
    #[case::a_full_width_dot("https://own。com/")]
    #[case::an_ipv6_address("http://[::1]/")]
    #[case::a_short_ipv4_address("http://127.1/")]
    #[case::a_hexadecimal_ipv4_address("http://0x7f.0.0.0x1/")]
    #[case::an_octal_ipv4_address("http://0177.0.0.1/")]
    #[case::one_number("http://2130706433/")]
    #[case::an_empty_label("https://own..com/")]
    #[case::no_host("https:///x")]
    #[case::nothing("")]
    fn what_programs_may_read_differently_has_no_host(#[case] url: &str) {
        assert_eq!(host(url), None);
    }

    #[rstest]
    #[case::plain("Ada.Lovelace+x@Own.com", "own.com")]
    #[case::one_label("root@localhost", "localhost")]
    fn the_domain_of_an_address_is_in_lower_case(#[case] address: &str, #[case] expected: &str) {
        assert_eq!(domain(address).as_deref(), Some(expected));
    }

    #[rstest]
    #[case::two_addresses("a@own.com,x@other.com")]
    #[case::two_addresses_and_a_blank("a@own.com x@other.com")]
    #[case::a_semicolon("x@other.com;a@own.com")]
    #[case::a_name("Ada <ada@own.com>")]
    #[case::quotes("\"x@evil.com\"@own.com")]
    #[case::a_comment("ada@own.com(evil.com)")]
    #[case::a_route("x%evil.com@own.com")]
    #[case::a_bang_path("evil!x@own.com")]
    #[case::a_line_break("ada@own.com\nbcc: x@evil.com")]
    #[case::an_address_literal("ada@[10.0.0.1]")]
    #[case::no_local_part("@own.com")]
    #[case::no_domain("ada@")]
    #[case::no_at("own.com")]
    fn everything_but_one_plain_address_has_no_domain(#[case] address: &str) {
        assert_eq!(domain(address), None);
    }

    proptest! {
        #[test]
        fn a_host_is_a_plain_name_and_stays_the_same(url in "(https?://)?[a-zA-Z0-9.:@/\\\\ \\t%\\[\\]_-]{0,30}") {
            if let Some(found) = host(&url) {
                prop_assert!(found.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte)));
                let again = format!("https://{found}/");
                prop_assert_eq!(host(&again), Some(found));
            }
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = (host(&text), domain(&text), host(&format!("https://{text}")));
        }
    }
}
