//! Counts lines of product code: what is compiled into programs that users run, without tests and
//! without the demo. Code and what is said about it are counted apart.

#![expect(clippy::print_stdout, reason = "it is for a person to read")]

use std::collections::BTreeMap;
use std::ops::AddAssign;
use windlass_repo::source::product;

/// Lines of a file or of several.
#[derive(Clone, Copy, Default)]
struct Lines {
    code: usize,
    comments: usize,
    blank: usize,
}

fn main() {
    let (mut parts, mut all) = (BTreeMap::<String, Lines>::new(), Lines::default());
    let mut files: Vec<(usize, String)> = Vec::new();
    for (file, text) in product() {
        let lines = Lines::of(&text);
        let part = file.split("/src/").next().unwrap_or_default().to_owned();
        *parts.entry(part).or_default() += lines;
        all += lines;
        files.push((lines.all(), file));
    }
    files.sort_by(|one, other| other.cmp(one));
    println!("  code  comments  blank     all");
    for (part, lines) in &parts {
        println!("{}  {part}", lines.row());
    }
    println!("{}  in {} files", all.row(), files.len());
    for (lines, file) in files.iter().take(3) {
        println!("{lines:29}  {file}");
    }
}

// === impl Lines ===

impl Lines {
    fn of(text: &str) -> Self {
        let mut lines = Self::default();
        for line in text.lines().map(str::trim_start) {
            match line {
                "" => lines.blank += 1,
                _ if line.starts_with("//") => lines.comments += 1,
                _ => lines.code += 1,
            }
        }
        lines
    }

    fn all(self) -> usize {
        self.code + self.comments + self.blank
    }

    fn row(self) -> String {
        let Self { code, comments, blank } = self;
        format!("{code:6}{comments:10}{blank:7}{:8}", self.all())
    }
}

impl AddAssign for Lines {
    fn add_assign(&mut self, more: Self) {
        self.code += more.code;
        self.comments += more.comments;
        self.blank += more.blank;
    }
}
