//! A plugin that was stopped: what waited for it meanwhile is no news.

use super::{LISTS, Plugin, body};
use serde_json::json;
use std::io::Write;
use std::thread::sleep;
use std::time::Duration;
use windlass_testkit::http::{connect, parse, request, rest};
use windlass_testkit::wait::until;

/// An agent gives up after two seconds.
const STOPPED: Duration = Duration::from_secs(3);

#[test]
fn what_waited_while_the_plugin_was_stopped_is_passed_over() {
    let plugin = Plugin::start(LISTS);
    plugin.gives_back("b", 1, 2);
    assert_eq!(plugin.permit("a", 3, 6), (200, Some((3, 6))));
    plugin.signal("STOP");
    let last = json!({ "vCPUs": 3, "mem": 6 });
    let waits = |version, last| {
        let mut stream = connect(&*plugin.permits);
        let request = request("POST", "/", &body(version, "a", (1, 2), last));
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    // Of an agent that takes any refusal for the last word, and of one that does not.
    let (old, new) = (waits(3, None), waits(4, Some(&last)));
    sleep(STOPPED);
    plugin.signal("CONT");
    let answer = parse(&rest(new)).unwrap();
    assert!(answer.status == 503 && answer.body.contains("did not run"), "{}", answer.body);
    assert_eq!(rest(old), "", "it asks again");
    assert!(plugin.log().contains("the process did not run"), "{}", plugin.log());
    until("requests are answered", || plugin.permit("a", 3, 6).0 == 200);
    assert_eq!(plugin.booked("one")[0], ("a".to_owned(), 3, 6));
}
