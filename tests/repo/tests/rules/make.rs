//! The vocabulary: `make`, and the scripts that it calls.

use windlass_repo::{assert_none, files, read, root, run};

#[test]
fn make_help_names_every_target() {
    let output = run("make", &["--no-print-directory", "help"]);
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let missing: Vec<String> = targets()
        .into_iter()
        .filter(|target| !help.lines().any(|line| line.starts_with(&format!("make {target} "))))
        .collect();
    assert_none("make help is silent about:", &missing);
}

#[test]
fn make_has_the_targets_that_documents_promise() {
    let targets = targets();
    let missing: Vec<String> = ["demo", "test", "guests", "check", "bench", "dist", "bugs", "help"]
        .iter()
        .filter(|name| !targets.iter().any(|target| target == *name))
        .map(|name| (*name).to_owned())
        .collect();
    assert_none("the Makefile lacks:", &missing);
}

#[test]
fn every_script_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let mut wrong = Vec::new();
    for file in files().into_iter().filter(|file| file.starts_with("dev/") || file == ".ci/run") {
        let mode = std::fs::metadata(root().join(&file)).map(|data| data.permissions().mode());
        if !mode.is_ok_and(|mode| mode & 0o111 == 0o111) || !read(&file).starts_with("#!") {
            wrong.push(file);
        }
    }
    assert_none("these scripts lack the bit or the first line:", &wrong);
}

#[test]
fn every_script_that_make_calls_is_there() {
    let called: Vec<String> = read("Makefile")
        .lines()
        .filter_map(|line| line.strip_prefix('\t')?.split(' ').next().map(str::to_owned))
        .filter(|word| word.starts_with("dev/"))
        .filter(|word| !root().join(word).is_file())
        .collect();
    assert_none("the Makefile calls what is not there:", &called);
}

#[test]
fn the_demo_shows_what_is_installed_and_built_only_if_that_fails_or_is_interrupted() {
    let quiet = run("dev/quietly", &["Trying", "sh", "-c", "echo noise; echo more >&2"]);
    let said = String::from_utf8_lossy(&quiet.stderr).into_owned();
    assert!(quiet.status.success() && quiet.stdout.is_empty());
    assert!(said.starts_with("Trying ..") && said.lines().count() == 1, "{said}");

    let failed = run("dev/quietly", &["Trying", "sh", "-c", "echo noise; echo more >&2; exit 3"]);
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(3), "{said}");
    assert!(said.contains("failed") && said.ends_with("noise\nmore\n"), "{said}");

    let script = "echo noise; sleep 60 & kill -TERM $PPID; wait; sleep 60; echo late";
    let ended = run("dev/quietly", &["Trying", "sh", "-c", script]);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("interrupted") && said.ends_with("\nnoise\n"), "{said}");

    let loud = |file: &str, program: &str| {
        let text = read(file).replace("\\\n", " ");
        let lines = text.lines().filter(|line| line.contains(program)).map(str::to_owned);
        lines.filter(|line| !line.contains("quietly")).collect::<Vec<_>>()
    };
    let makefile = read("Makefile");
    let (_, recipe) = makefile.split_once("\ndemo:").expect("a target demo");
    let (recipe, _) = recipe.split_once("\n\n").expect("targets apart by a blank line");
    let mut all: Vec<String> = recipe
        .lines()
        .filter(|line| line.contains("cargo build") && !line.contains("dev/quietly "))
        .map(str::to_owned)
        .collect();
    all.extend(loud("dev/static", "cargo build"));
    all.extend(loud("dev/need", "/install\""));
    all.extend(loud("dev/kernel", "--fetch \"$@\""));
    all.extend(loud("dev/control-plane", "--build $lacking"));
    assert_none("these are not quiet:", &all);
}

fn targets() -> Vec<String> {
    let makefile = read("Makefile");
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:"));
    phony.expect("the Makefile lists its targets").split_whitespace().map(str::to_owned).collect()
}
