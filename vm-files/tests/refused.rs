//! A kernel that watches no more: alone in its process, whose limits it changes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use windlass_testkit::Folder;
use windlass_vm_files::folder::look;
use windlass_vm_files::watch::Watch;

#[test]
fn a_kernel_that_refuses_to_watch_says_so_and_files_are_read_all_the_same() {
    let place = Folder::create().unwrap();
    fs::write(place.at("a.toml"), "a").unwrap();
    let before = getrlimit(Resource::Nofile);
    // The limit of instances of a user and that of descriptors of a process are one refusal: EMFILE.
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..before }).unwrap();
    let refused = Watch::begin(place.path()).unwrap_err();
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
    assert_eq!(look(place.path()).unwrap().len(), 1);
}
