//! How much memory there is, asked before it is taken.
//!
//! A number from a user or a file becomes an allocation only after [`require`] has compared what it needs with what
//! there is: the smallest of the memory the system could hand out, what is left to the process's control groups, and
//! what is left of its address space. Needs are counted in [`u128`] with saturation, so that no product of sizes can
//! overflow on the way.

use std::path::{Path, PathBuf};

/// What is assumed where the system does not say.
const ELSEWHERE: u64 = 32 << 30;

/// Something would need more memory than there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} needs {}, but {} of memory are available; {remedy}", in_words(*needed), in_words(u128::from(*available)))]
pub struct TooLarge {
    /// What was asked for.
    pub what: String,
    /// Bytes it needs.
    pub needed: u128,
    /// Bytes there are.
    pub available: u64,
    /// What to do about it.
    pub remedy: &'static str,
}

/// Bytes of an array with these sides, `width` bytes an entry; the largest number if that overflows.
///
/// ```
/// use limitpoint::memory::bytes;
/// assert_eq!(bytes(&[3, 2], 8), 48);
/// assert_eq!(bytes(&[usize::MAX, usize::MAX, 2], 8), u128::MAX);
/// ```
pub fn bytes(sides: &[usize], width: usize) -> u128 {
    sides.iter().fold(width as u128, |product, side| product.saturating_mul(*side as u128))
}

/// Refuses what needs more bytes than there are.
///
/// ```
/// use limitpoint::memory::{bytes, require};
/// assert!(require("a small matrix", bytes(&[3, 2], 8), "make it smaller").is_ok());
/// let error = require("a matrix", bytes(&[1 << 40, 1 << 40], 8), "make it smaller").unwrap_err();
/// assert!(error.to_string().starts_with("a matrix needs 9.67e24 bytes, but "), "{error}");
/// ```
pub fn require(what: impl Into<String>, needed: u128, remedy: &'static str) -> Result<(), TooLarge> {
    // nothing this small is worth a look at the system
    if needed <= 1 << 20 {
        return Ok(());
    }
    let available = available();
    if needed <= u128::from(available) {
        return Ok(());
    }
    Err(TooLarge { what: what.into(), needed, available, remedy })
}

/// Bytes that can be taken now.
pub fn available() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let system = read(Path::new("/proc/meminfo")).and_then(|text| meminfo(&text)).unwrap_or(ELSEWHERE);
    let groups = read(Path::new("/proc/self/cgroup")).map_or(u64::MAX, |text| control_groups(&text, &read));
    let space = read(Path::new("/proc/self/limits"))
        .and_then(|limits| address_space(&limits, &read(Path::new("/proc/self/status"))?))
        .unwrap_or(u64::MAX);
    system.min(groups).min(space)
}

/// The number before `kB` in the line of `/proc/meminfo` or `/proc/self/status` that begins with `key`.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn meminfo(text: &str) -> Option<u64> {
    kilobytes(text, "MemAvailable:")
}

/// What is left of the limit on the address space (`ulimit -v`), if there is one.
fn address_space(limits: &str, status: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kilobytes(status, "VmSize:")?))
}

/// What is left in the memory control groups that `/proc/self/cgroup` names, and in those above them.
fn control_groups(text: &str, read: &dyn Fn(&Path) -> Option<String>) -> u64 {
    let mut least = u64::MAX;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, used) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            list if list.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        let mut folder = PathBuf::from(root);
        let names = Path::new(group).components().filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name),
            _ => None,
        });
        let mut folders = vec![folder.clone()];
        for name in names {
            folder.push(name);
            folders.push(folder.clone());
        }
        for folder in folders {
            let number = |file: &str| read(&folder.join(file))?.trim().parse::<u64>().ok();
            if let (Some(limit), Some(used)) = (number(limit), number(used)) {
                // pages of files that nobody uses are given back when memory runs short
                let spare = read(&folder.join("memory.stat")).and_then(|stat| {
                    stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok())
                });
                least = least.min(limit.saturating_sub(used.saturating_sub(spare.unwrap_or(0))));
            }
        }
    }
    least
}

/// `512 bytes`, `1.5 GiB`, `9.67e24 bytes`.
fn in_words(bytes: u128) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64;
    for unit in UNITS {
        size /= 1024.0;
        if size < 1024.0 {
            return format!("{size:.1} {unit}");
        }
    }
    format!("{:.2e} bytes", bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_saturate_and_sizes_are_said() {
        assert_eq!(bytes(&[], 8), 8);
        assert_eq!(bytes(&[0, usize::MAX, usize::MAX], 8), 0);
        assert_eq!(bytes(&[usize::MAX; 4], 8), u128::MAX);
        assert_eq!(in_words(1023), "1023 bytes");
        assert_eq!(in_words(3 << 29), "1.5 GiB");
        assert_eq!(in_words(u128::MAX), "3.40e38 bytes");
        let error = require("the model", u128::MAX, "lower the widths").unwrap_err();
        assert!(error.to_string().ends_with("of memory are available; lower the widths"), "{error}");
        assert!(error.available > 1 << 20 && require("the model", 1 << 20, "").is_ok());
    }

    #[test]
    fn the_least_limit_counts() {
        assert_eq!(meminfo("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(meminfo("MemTotal: 9 kB\n"), None);
        let limits = "Max address space         4096000              unlimited            bytes\n";
        assert_eq!(address_space(limits, "VmSize:\t    1000 kB\n"), Some(4_096_000 - 1_024_000));
        assert_eq!(address_space("Max address space  unlimited  unlimited bytes\n", "VmSize: 1 kB\n"), None);
    }

    #[test]
    fn control_groups_of_both_kinds_are_read_up_to_the_root() {
        let files = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "1000\n",
                "/sys/fs/cgroup/a/memory.current" => "600\n",
                "/sys/fs/cgroup/a/memory.stat" => "anon 5\ninactive_file 100\n",
                "/sys/fs/cgroup/a/b/memory.max" => "5000\n",
                "/sys/fs/cgroup/a/b/memory.current" => "400\n",
                "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => "700\n",
                "/sys/fs/cgroup/memory/c/memory.usage_in_bytes" => "300\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(control_groups("0::/a/b\n", &files), 500);
        assert_eq!(control_groups("4:cpu,memory:/c\n0::/\n", &files), 400);
        assert_eq!(control_groups("0::/\n", &files), u64::MAX);
    }
}
