//! Who may only look at a host: what is shown, and what is refused.

use crate::support::{Host, vm_file};
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_second_socket_shows_everything_and_takes_no_order() {
    let mut host = Host::start();
    host.put("a", &vm_file(&host.path("a.sock"), "127.0.0.71:1"));
    let view = host.path("host.view.sock");
    let mode = std::fs::metadata(&view).unwrap().permissions().mode() & 0o777;
    assert!(mode == 0o600 || mode == 0o660, "{mode:o}");
    let at = view.to_str().unwrap();
    assert!(host.say(&["top", "--socket", at]).starts_with("node 4 vCPU / 4GiB"));
    host.say(&["vm", "list", "--socket", at]);
    for order in [
        &["freeze"][..],
        &["pause", "a", "--for", "1h"],
        &["resume", "a"],
        &["vm", "release", "a"],
        &["log-level", "debug"],
    ] {
        let (code, said) = host.fail(&[order, &["--socket", at]].concat());
        assert_eq!(code, 77, "{said}");
        assert!(
            said.contains("is an order, and members of group windlass-view may only"),
            "{said}"
        );
    }
    assert!(!host.say(&["top"]).contains("FROZEN"));
    assert!(host.log().contains("order refused: it came through the socket that only shows"));
    // What comes through the other socket is obeyed as ever.
    host.say(&["freeze"]);
    assert!(host.say(&["top", "--socket", at]).contains("FROZEN"));
    host.stop();
    assert!(!view.exists(), "it goes with the host");
}
