//! What a host makes of its VM files, look by look.

use super::*;
use std::fs;

const A: (&str, &str) = ("a", "127.0.0.2:10301");
const B: (&str, &str) = ("b", "127.0.0.3:10301");

#[test]
fn a_file_counts_once_it_has_been_the_same_twice() {
    let mut folder = Folder::new(Path::new("/vms.d"));
    assert_eq!(names(&folder.observe(look_of(&[("a", &text(A, 4))]), true)), ["a"]);
    // Half a file that is valid by itself, then the whole.
    let half = text(A, 3);
    let whole = format!("{half}\n[target]\nmemory = 0.5\n");
    assert!(folder.observe(look_of(&[("a", &half)]), false).is_empty());
    assert!(folder.observe(look_of(&[("a", &whole)]), false).is_empty());
    assert_eq!(names(&folder.observe(look_of(&[("a", &whole)]), false)), ["a"]);
    assert!(folder.observe(look_of(&[("a", &whole)]), false).is_empty());
    assert_eq!(folder.get("a").unwrap().info.target.memory, 0.5);
}

#[test]
fn an_invalid_file_keeps_the_last_valid_one_and_disturbs_no_other() {
    let mut folder = Folder::new(Path::new("/vms.d"));
    folder.observe(look_of(&[("a", &text(A, 4)), ("b", &text(B, 4))]), true);
    let broken = text(A, 4).replace("cpu = 4", "cpu = 0");
    let steps = observe_twice(&mut folder, &[("a", &broken), ("b", &text(B, 2))]);
    assert_eq!(names(&steps), ["b"]);
    assert_eq!(folder.valid().count(), 2);
    let reports = folder.reports();
    assert_eq!(reports.len(), 1);
    let said = reports[0].to_string();
    assert!(said.starts_with("/vms.d/a.toml: max.cpu = 0: must be 0.05 to 512"), "{said}");
    assert!(said.ends_with("(the last valid one stays in force)"), "{said}");
    // Put right, it is as if nothing had been; and it is not read half either.
    let half = text(A, 3);
    assert!(folder.observe(look_of(&[("a", &half), ("b", &text(B, 2))]), false).is_empty());
    let entries = folder.entries().map(|(stem, valid, problems)| {
        (stem, valid.map(|file| file.info.bounds.max.cpu.to_string()), problems.len())
    });
    let entries: Vec<_> = entries.collect();
    assert_eq!(entries, [("a", Some("4".to_owned()), 1), ("b", Some("2".to_owned()), 0)]);
    observe_twice(&mut folder, &[("a", &text(A, 4)), ("b", &text(B, 2))]);
    assert!(folder.reports().is_empty());
}

#[test]
fn a_file_that_was_never_valid_manages_nothing() {
    let mut folder = Folder::new(Path::new("/vms.d"));
    assert!(folder.observe(look_of(&[("a", "qmp = 1")]), true).is_empty());
    assert!(folder.reports()[0].to_string().ends_with("(this VM is not managed)"));
    // Its end is no news either.
    assert!(observe_twice(&mut folder, &[]).is_empty());
    assert!(folder.reports().is_empty());
}

#[test]
fn a_file_that_is_gone_is_forgotten_but_a_folder_that_is_gone_is_not() {
    let mut folder = Folder::new(Path::new("/vms.d"));
    folder.observe(look_of(&[("a", &text(A, 4)), ("b", &text(B, 4))]), true);
    let unreadable = Err(Problem::without_value("", "cannot be read: no such file"));
    assert!(folder.observe(unreadable, false).is_empty());
    assert_eq!(folder.valid().count(), 2);
    assert!(folder.reports()[0].to_string().contains("every VM stays as it is"));
    // Missing once may be an editor's way of writing.
    assert!(folder.observe(look_of(&[("a", &text(A, 4))]), false).is_empty());
    assert!(observe_twice(&mut folder, &[("a", &text(A, 4)), ("b", &text(B, 4))]).is_empty());
    let steps = observe_twice(&mut folder, &[("a", &text(A, 4))]);
    assert_eq!(steps, [Step::Forget("b".to_owned())]);
    assert!(folder.reports().is_empty());
}

#[test]
fn two_vms_cannot_share_a_monitor_and_who_has_it_keeps_it() {
    let mut folder = Folder::new(Path::new("/vms.d"));
    folder.observe(look_of(&[("b", &text(A, 4))]), true);
    let steps = observe_twice(&mut folder, &[("a", &text(A, 4)), ("b", &text(A, 4))]);
    assert!(steps.is_empty());
    let said = folder.reports()[0].to_string();
    assert!(said.contains("qmp = /run/a.sock: b has this monitor"), "{said}");
    assert!(said.contains("informant = 127.0.0.2:10301: b has the informant"), "{said}");
    // Once the other is gone there is nothing wrong with it.
    let steps = observe_twice(&mut folder, &[("a", &text(A, 4))]);
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(folder.reports().is_empty());
}

#[test]
fn what_a_vm_lets_go_of_another_may_have_and_no_third() {
    let mut folder = Folder::new(Path::new("/vms.d"));
    let c = ("c", "127.0.0.4:10301");
    folder.observe(look_of(&[("a", &text(A, 4)), ("b", &text(B, 4))]), true);
    // `a` moves to a monitor and an informant of its own, and `b` to those that `a` had.
    let moved = [("a", &*text(c, 4)), ("b", &*text(A, 4))];
    assert_eq!(names(&observe_twice(&mut folder, &moved)), ["a", "b"]);
    assert!(folder.reports().is_empty());
    let third = |text: &str| {
        let problems = folder.check("d", text).err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let of = |whose: &str, said: &str| said.contains(&format!("{whose} has this monitor"));
    assert!(of("a", &third(&text(c, 4))) && of("b", &third(&text(A, 4))));
    assert_eq!(third(&text(B, 4)), "");
    // The monitor of one and the informant of the other.
    let both = text(A, 4).replace(A.1, c.1);
    let said = third(&both);
    assert_eq!(
        said,
        "informant = 127.0.0.4:10301: a has the informant at this address; \
         qmp = /run/a.sock: b has this monitor, which serves one client at a time"
    );
}

#[test]
fn a_text_is_checked_beside_the_other_files_whether_they_are_in_force_or_not() {
    let folder = Folder::new(Path::new("/vms.d"));
    let look = look_of(&[("a", &text(A, 4)), ("b", &text(B, 4))]);
    let mut settled = Folder::new(Path::new("/vms.d"));
    settled.observe(look.clone(), true);
    assert_eq!(settled.check_beside(&look, "c", &text(B, 2)).unwrap_err().len(), 2);
    let moved = look_of(&[("a", &text(("c", "127.0.0.4:10301"), 4)), ("b", &text(B, 4))]);
    assert_eq!(
        settled.check_beside(&moved, "c", &text(("c", "127.0.0.4:10301"), 2)).unwrap_err().len(),
        2
    );
    let valid = |stem, text: &str| folder.check_beside(&look, stem, text).map(|_| ());
    assert_eq!(valid("a", &text(A, 2)), Ok(()), "its own file is none beside it");
    let said = valid("c", &text(B, 2)).unwrap_err();
    let said: Vec<String> = said.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "qmp = /run/b.sock: b has this monitor, which serves one client at a time",
            "informant = 127.0.0.3:10301: b has the informant at this address",
        ]
    );
}

#[test]
fn minima_are_summed_over_what_is_in_force() {
    let mut folder = Folder::new(Path::new("/vms.d"));
    folder.observe(look_of(&[("a", &text(A, 4)), ("b", &text(B, 4)), ("c", "")]), true);
    assert_eq!(folder.minima().to_string(), "2 vCPU / 1GiB");
}

#[test]
fn only_files_of_vms_are_looked_at_and_each_for_itself() {
    let own = windlass_testkit::Folder::create().unwrap();
    let dir = own.path();
    let put = |name: &str, text: &[u8]| fs::write(dir.join(name), text).unwrap();
    put("a.toml", b"x = 1");
    put(".a.toml.swp", b"");
    put("a.toml~", b"");
    put("a.toml.new", b"");
    put("notes.txt", b"");
    put(".toml", b"");
    put("latin.toml", b"\xff");
    put("long.toml", &vec![b'#'; 300 * 1024]);
    fs::create_dir(dir.join("folder.toml")).unwrap();
    std::os::unix::fs::symlink("/nonexistent", dir.join("dangling.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.join("endless.toml")).unwrap();
    let found = look(dir).unwrap();
    let said: Vec<String> = found
        .iter()
        .map(|(stem, text)| match text {
            Ok(text) => format!("{stem} reads {text}"),
            Err(problem) => format!("{stem} {problem}"),
        })
        .collect();
    assert_eq!(
        said,
        [
            "a reads x = 1",
            "endless is no file",
            "folder is no file",
            "latin is not UTF-8 text",
            "long has 307200 bytes and is longer than 256 KiB, the limit for a configuration",
        ]
    );
    assert!(look(&dir.join("none")).is_err());
}

fn observe_twice(folder: &mut Folder, files: &[(&str, &str)]) -> Vec<Step> {
    let mut steps = folder.observe(look_of(files), false);
    steps.extend(folder.observe(look_of(files), false));
    steps
}

fn look_of(files: &[(&str, &str)]) -> Look {
    Ok(files.iter().map(|(stem, text)| ((*stem).to_owned(), Ok((*text).to_owned()))).collect())
}

fn text((monitor, informant): (&str, &str), cpus: u32) -> String {
    format!(
        "qmp = \"/run/{monitor}.sock\"\ninformant = \"{informant}\"\n\
         [min]\ncpu = 1\nmemory = \"512MiB\"\n[max]\ncpu = {cpus}\nmemory = \"4GiB\"\n"
    )
}

fn names(steps: &[Step]) -> Vec<&str> {
    steps
        .iter()
        .map(|step| match step {
            Step::Manage(file) => file.info.name.name.as_str(),
            Step::Forget(stem) => stem.as_str(),
        })
        .collect()
}
