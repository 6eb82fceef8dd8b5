//! Archives in cpio's "newc" form, which the kernel unpacks as an initramfs.

/// An archive in the making.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CHARACTER: u32 = 0o020_600;

// === impl Archive ===

impl Archive {
    /// Adds a directory; its parent must be there already.
    pub(crate) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, (0, 0), &[]);
    }

    /// Adds an executable file.
    pub(crate) fn program(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, (0, 0), content);
    }

    /// Adds a character device.
    pub(crate) fn character(&mut self, name: &str, major: u32, minor: u32) {
        self.entry(name, CHARACTER, (major, minor), &[]);
    }

    /// Closes the archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let length = |bytes: usize| u32::try_from(bytes).expect("an image is far below 4 GiB");
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            length(content.len()),
            0,
            0,
            device.0,
            device.1,
            length(name.len() + 1),
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn cpio_reads_what_is_written() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.program("bin/odd", b"12345");
        archive.character("console", 5, 1);

        let mut cpio = Command::new("cpio")
            .args(["--list", "--verbose", "--numeric-uid-gid", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        cpio.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        let output = cpio.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(output.status.success());
        assert!(lines[0].starts_with("drwxr-xr-x") && lines[0].ends_with(" bin"), "{text}");
        assert!(lines[1].starts_with("-rwxr-xr-x") && lines[1].ends_with(" bin/odd"), "{text}");
        assert!(lines[1].contains(" 5 "), "{text}");
        assert!(lines[2].starts_with("crw-------") && lines[2].contains("5,   1"), "{text}");
        assert_eq!(lines.len(), 3, "{text}");
    }
}
