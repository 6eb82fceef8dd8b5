//! Where the programs come from, and what is said where they are not to be had.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use windlass_testkit::Folder;

const PROGRAMS: [&str; 5] =
    ["etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl"];

#[test]
fn what_is_not_built_is_named_with_the_way_to_have_it() {
    let folder = Folder::create().expect("a folder");
    put_program(&folder, "bin/go", "#!/bin/sh\necho go1.26.8\n");
    let words = refusal(where_with(&folder, "none"));
    let names = PROGRAMS.join(" ");
    assert!(words.contains(&format!("not built yet: {names}")), "{words}");
    assert!(words.contains("in some minutes: dev/control-plane"), "{words}");
}

#[test]
fn a_go_that_is_too_old_is_named_with_the_way_to_have_another() {
    let folder = Folder::create().expect("a folder");
    for version in ["go1.9.7", "go1.19", "go1.24", "go1.24.6"] {
        put_program(&folder, "bin/go", &format!("#!/bin/sh\necho {version}\n"));
        let words = refusal(where_with(&folder, "none"));
        assert!(words.contains(&format!("{version} is too old")), "{words}");
        assert!(words.contains("Go 1.25 or later: https://go.dev/dl"), "{words}");
    }
    put_program(&folder, "bin/go", "#!/bin/sh\n[ $1 = version ] && echo go 1.24 || exit 1\n");
    assert!(refusal(where_with(&folder, "none")).contains("go 1.24 is too old, or is no Go"));
}

#[test]
fn programs_that_are_given_need_no_go() {
    let folder = Folder::create().expect("a folder");
    put_program(&folder, "bin/go", "#!/bin/sh\nexit 1\n");
    let paths = PROGRAMS.map(|name| {
        put_program(&folder, &format!("given/{name}"), "");
        folder.at("given").join(name).display().to_string()
    });
    let said = where_with(&folder, "given");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.lines().collect::<Vec<_>>(), paths);
}

/// With an empty cache, the Go in `bin`, and these programs.
fn where_with(folder: &Folder, given: &str) -> Output {
    let path = std::env::var("PATH").expect("a path");
    let mut command = Command::new(Path::new("../../dev/control-plane"));
    command.arg("--where").env("WINDLASS_CACHE", folder.at("cache"));
    command.env("KUBEBUILDER_ASSETS", folder.at(given));
    command.env("PATH", format!("{}:{path}", folder.at("bin").display()));
    command.output().expect("the script runs")
}

fn refusal(said: Output) -> String {
    assert_eq!(said.status.code(), Some(1));
    String::from_utf8_lossy(&said.stderr).into_owned()
}

fn put_program(folder: &Folder, name: &str, text: &str) {
    let path = folder.put(name, text);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("a file of ours");
}
