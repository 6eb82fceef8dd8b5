//! A monitor in a volume of a pod, in which the pod may have put anything.

use std::os::unix::fs::symlink;
use windlass_drivers::{Attach, Driver, DriverError};
use windlass_drivers_qemu::QemuInPod;
use windlass_testkit::Folder;
use windlass_testkit::qmp::{FakeMonitor, Reply};

#[tokio::test]
async fn a_monitor_is_reached_by_a_path_that_is_too_long_for_an_address() {
    let monitor = FakeMonitor::new(|_, _| Reply::Usual);
    let folder = Folder::create().unwrap();
    let deep = folder.path().join("x".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let qmp = deep.join("qmp.sock");
    std::fs::hard_link(monitor.path(), &qmp).unwrap();
    let (mut driver, _notices) = QemuInPod { qmp }.attach().await.unwrap();
    driver.see().await.unwrap();
}

#[tokio::test]
async fn nothing_but_the_socket_itself_is_connected_to() {
    let monitor = FakeMonitor::new(|_, _| Reply::Usual);
    let folder = Folder::create().unwrap();
    let attach = async |name: &str| {
        let qmp = folder.path().join(name);
        QemuInPod { qmp }.attach().await.err().unwrap()
    };
    symlink(monitor.path(), folder.path().join("link")).unwrap();
    let error = attach("link").await;
    assert!(error.to_string().contains("a link is not followed"), "{error}");
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert!(matches!(attach("file").await, DriverError::Broken(_)));
    assert!(matches!(attach("nothing").await, DriverError::Gone { .. }));
}
