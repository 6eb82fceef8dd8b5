//! What the kernel says of a real folder.

use super::*;
use std::fs;
use windlass_testkit::Folder;

#[test]
fn whatever_may_change_a_vm_file_is_noticed() {
    let place = Folder::create().unwrap();
    let (a, b) = (place.at("a.toml"), place.at("b.toml"));
    let watch = Watch::begin(place.path()).unwrap();
    assert!(watch.notice().is_none());
    fs::write(&a, "a").unwrap();
    assert_eq!(watch.notice(), Some(Notice::Changed), "written");
    fs::rename(&a, &b).unwrap();
    assert_eq!(watch.notice(), Some(Notice::Changed), "renamed");
    fs::set_permissions(&b, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(watch.notice(), Some(Notice::Changed), "its mode");
    let elsewhere = Folder::create().unwrap();
    fs::rename(&b, elsewhere.at("b.toml")).unwrap();
    assert_eq!(watch.notice(), Some(Notice::Changed), "taken away");
    fs::rename(elsewhere.at("b.toml"), &b).unwrap();
    assert_eq!(watch.notice(), Some(Notice::Changed), "put there");
    fs::read_to_string(&b).unwrap();
    fs::read_dir(place.path()).unwrap().count();
    assert!(watch.notice().is_none(), "to look changes nothing");
    fs::remove_file(&b).unwrap();
    assert_eq!(watch.notice(), Some(Notice::Changed), "removed");
}

#[test]
fn a_folder_that_goes_is_lost_and_one_that_is_made_anew_can_be_watched() {
    let place = Folder::create().unwrap();
    let (vms, away) = (place.at("vms.d"), place.at("away"));
    let missing = Watch::begin(&vms).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    fs::create_dir(&vms).unwrap();
    let watch = Watch::begin(&vms).unwrap();
    fs::rename(&vms, &away).unwrap();
    assert_eq!(watch.notice(), Some(Notice::Lost), "moved");
    fs::create_dir(&vms).unwrap();
    let watch = Watch::begin(&vms).unwrap();
    fs::write(vms.join("a.toml"), "a").unwrap();
    assert_eq!(watch.notice(), Some(Notice::Changed), "the new one");
    fs::remove_dir_all(&vms).unwrap();
    assert_eq!(watch.notice(), Some(Notice::Lost), "removed");
    fs::write(&vms, "no folder").unwrap();
    assert_eq!(Watch::begin(&vms).unwrap_err().kind(), io::ErrorKind::NotADirectory);
}

#[test]
fn more_notices_than_the_kernel_keeps_are_a_notice() {
    let place = Folder::create().unwrap();
    let watch = Watch::begin(place.path()).unwrap();
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let most: usize = most.trim().parse().unwrap();
    let (a, b) = (place.at("a.toml"), place.at("b.toml"));
    fs::write(&a, "a").unwrap();
    // Each renaming is two.
    for _ in 0..most / 4 + 10 {
        fs::rename(&a, &b).unwrap();
        fs::rename(&b, &a).unwrap();
    }
    assert_eq!(watch.notice(), Some(Notice::Changed));
    fs::write(&b, "b").unwrap();
    assert_eq!(watch.notice(), Some(Notice::Changed), "it goes on");
}
