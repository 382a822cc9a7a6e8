//! Who may see what: a token, the name the server is called by, and no path outside the folder.

use std::path::{Component, Path, PathBuf};

use anyhow::Context;

/// Who may ask.
#[derive(Debug, Clone)]
pub struct Guard {
    /// What a visitor must know.
    pub token: Option<String>,
    /// Whether only this machine can ask.
    pub loopback: bool,
}

impl Guard {
    /// Whether a request may be answered: its token, from the address or from the cookie, and the host it names. A page of
    /// somebody else that leads its own name to this machine names that host, and is refused.
    pub fn admits(&self, query: Option<&str>, cookie: Option<&str>, host: Option<&str>) -> bool {
        if self.loopback && !host.is_some_and(is_local) {
            return false;
        }
        let Some(token) = &self.token else { return true };
        let of = |text: &str, separator: char, name: &str| {
            text.split(separator)
                .filter_map(|pair| pair.trim().split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        };
        let given = query.and_then(|query| of(query, '&', "token"));
        let kept = cookie.and_then(|cookie| of(cookie, ';', COOKIE));
        [given, kept].into_iter().flatten().any(|given| same(&given, token))
    }
}

/// Name of the cookie that keeps the token.
pub const COOKIE: &str = "limitpoint-token";

/// Takes as long for a wrong token as for the right one.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Whether a `Host` is this machine: `localhost:8765`, `127.0.0.1`, `[::1]:80`.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A token that fits into an address and a cookie as it is.
pub fn token(text: &str) -> Result<String, String> {
    let plain = text.len() >= 8 && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if plain { Ok(text.to_owned()) } else { Err("must be at least 8 letters, digits, - or _".into()) }
}

/// 32 hexadecimal digits of the system's randomness.
pub fn random_token() -> anyhow::Result<String> {
    use std::io::Read;
    let mut bytes = [0_u8; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("this system gives no random numbers; choose a token with --token")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a path of a request leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A file in the folder.
    File(PathBuf),
    /// Nothing there.
    Missing,
    /// A place that is not in the folder.
    Outside,
}

/// The file that a path of a request names in `folder`, which is a path without links.
pub fn find(folder: &Path, asked: &str) -> Found {
    let asked = Path::new(asked);
    if asked.as_os_str().is_empty() || asked.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Found::Outside;
    }
    match folder.join(asked).canonicalize() {
        Ok(path) if !path.starts_with(folder) => Found::Outside,
        Ok(path) if path.is_file() => Found::File(path),
        _ => Found::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_and_other_names_are_refused() {
        let open = Guard { token: None, loopback: true };
        for host in ["localhost", "localhost:8765", "127.0.0.1:1", "[::1]:8765", "127.0.0.1"] {
            assert!(open.admits(None, None, Some(host)), "{host}");
        }
        for host in ["example.org", "127.0.0.1.example.org:8765", "10.0.0.1", "", "localhost.evil:1"] {
            assert!(!open.admits(None, None, Some(host)), "{host}");
        }
        assert!(!open.admits(None, None, None));
        let closed = Guard { token: Some("abcdefgh".into()), loopback: false };
        assert!(closed.admits(Some("x=1&token=abcdefgh"), None, Some("node7")));
        assert!(closed.admits(None, Some("a=b; limitpoint-token=abcdefgh"), None));
        for (query, cookie) in [
            (None, None),
            (Some("token=abcdefgi"), None),
            (Some("token="), None),
            (Some("token=abcdefghi"), None),
            (Some("nottoken=abcdefgh"), Some("token=abcdefgh")),
        ] {
            assert!(!closed.admits(query, cookie, Some("node7")), "{query:?} {cookie:?}");
        }
        assert!(token("short").is_err() && token("a b c d e f").is_err() && token("abcd-1234").is_ok());
        let made = random_token().unwrap();
        assert!(made.len() == 32 && token(&made).is_ok() && made != random_token().unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn no_path_leads_out_of_the_folder() {
        let root = std::env::temp_dir().join(format!("limitpoint-guard-{}", std::process::id()));
        let folder = root.join("runs");
        std::fs::create_dir_all(folder.join("a")).unwrap();
        std::fs::write(folder.join("a/metrics.csv"), "step\n").unwrap();
        std::fs::write(root.join("secret"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
        std::os::unix::fs::symlink("..", folder.join("up")).unwrap();
        std::os::unix::fs::symlink("a/metrics.csv", folder.join("inside")).unwrap();
        let folder = folder.canonicalize().unwrap();
        assert_eq!(find(&folder, "a/metrics.csv"), Found::File(folder.join("a/metrics.csv")));
        assert_eq!(find(&folder, "inside"), Found::File(folder.join("a/metrics.csv")));
        for path in ["../secret", "a/../../secret", "/etc/passwd", "link", "up/secret", "", "./a/metrics.csv/..", ".."]
        {
            assert_eq!(find(&folder, path), Found::Outside, "{path}");
        }
        for path in ["a", "b", "a/b", "a/metrics.csv/x", "a\0b"] {
            assert_eq!(find(&folder, path), Found::Missing, "{path}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
