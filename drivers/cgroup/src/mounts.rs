//! Where the files of a cgroup are: `/proc/PID/cgroup` names it, `/proc/self/mountinfo` says where its
//! hierarchy is mounted.

use crate::version::Version;

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    version: Version,
    /// The cgroup that stands at the mount point.
    root: String,
    point: String,
}

/// Where a cgroup stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The folder, from the machine's root.
    pub(crate) folder: String,
    /// Whether it is the top of what is mounted.
    pub(crate) is_top: bool,
}

/// The version and path of the cgroup that limits CPU, of a `/proc/PID/cgroup`. A machine with both versions
/// has the controller in v1.
pub(crate) fn cpu_group(text: &str) -> Option<(Version, &str)> {
    let mut unified = None;
    for line in text.lines() {
        // A path may hold colons, too.
        let mut parts = line.splitn(3, ':');
        let (Some(id), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if controllers.split(',').any(|name| name == "cpu") {
            return Some((Version::V1, path));
        }
        if id == "0" && controllers.is_empty() {
            unified = Some((Version::V2, path));
        }
    }
    unified
}

/// Where a cgroup stands by a `/proc/self/mountinfo`, if it stands anywhere.
pub(crate) fn place(mountinfo: &str, version: Version, path: &str) -> Option<Place> {
    // It is above what this process can see.
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    let mounts = mountinfo.lines().filter_map(mount).filter(|mount| mount.version == version);
    mounts.into_iter().find_map(|mount| {
        let rest = below(path, &mount.root)?;
        let point = mount.point.trim_end_matches('/');
        let slash = if rest.is_empty() { "" } else { "/" };
        Some(Place { folder: format!("{point}{slash}{rest}"), is_top: rest.is_empty() })
    })
}

/// What is left of a path below another; empty if it is the same.
pub(crate) fn below<'a>(path: &'a str, above: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(above.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_matches('/'))
}

/// `31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw`; between the options and the hyphen there
/// are any number of fields.
fn mount(line: &str) -> Option<Mount> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (mount.next()?, mount.next()?);
    let mut kind = kind.split(' ');
    let (kind, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
    let version = match kind {
        "cgroup2" => Version::V2,
        "cgroup" if options.split(',').any(|name| name == "cpu") => Version::V1,
        _ => return None,
    };
    Some(Mount { version, root: unescaped(root), point: unescaped(point) })
}

/// The kernel writes space, tab, newline and backslash as `\040`, `\011`, `\012`, `\134`.
fn unescaped(text: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_owned(), |text, (code, meant)| text.replace(code, meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_of_v1_comes_before_v2() {
        for (text, found) in [
            ("0::/a.scope\n", Some((Version::V2, "/a.scope"))),
            ("9:cpu,cpuacct:/a:b\n1:name=systemd:/c\n0::/d\n", Some((Version::V1, "/a:b"))),
            ("0::/d\n9:cpuacct,cpu:/a\n", Some((Version::V1, "/a"))),
            ("9:cpuset:/a\n8:cpuacct:/b\n0::/d\n", Some((Version::V2, "/d"))),
            ("9:cpuset:/a\n1:name=systemd:/c\n", None),
            ("x\n\n0:\n", None),
        ] {
            assert_eq!(cpu_group(text), found, "{text}");
        }
    }

    #[test]
    fn a_group_stands_below_its_mount() {
        const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";
        const PART: &str = "30 23 0:28 /docker/a\\134b /mnt/c\\040d rw - cgroup2 cgroup2 rw
30 23 0:28 /else /mnt/else rw - cgroup2 cgroup2 rw
";
        for (mounts, version, path, folder) in [
            (V1, Version::V1, "/m.slice/x", Some(("/sys/fs/cgroup/cpu,cpuacct/m.slice/x", false))),
            (V1, Version::V1, "/", Some(("/sys/fs/cgroup/cpu,cpuacct", true))),
            (V1, Version::V2, "/x", Some(("/sys/fs/cgroup/unified/x", false))),
            (PART, Version::V2, "/docker/a\\b/x", Some(("/mnt/c d/x", false))),
            (PART, Version::V2, "/docker/a\\b", Some(("/mnt/c d", true))),
            (PART, Version::V2, "/docker/a\\bc/x", None),
            (PART, Version::V2, "/else/x", Some(("/mnt/else/x", false))),
            (PART, Version::V2, "/x", None),
            (PART, Version::V1, "/else/x", None),
            (V1, Version::V2, "/../x", None),
            ("- -\nx - y\n", Version::V2, "/x", None),
        ] {
            let place = place(mounts, version, path);
            let found = place.as_ref().map(|place| (place.folder.as_str(), place.is_top));
            assert_eq!(found, folder, "{path}");
        }
    }
}
