//! Which order was given, by which process, and when.

use super::words::instant;
use windlass_protocol::status::{HostStatus, OrderKind, Ordered};

/// An order in a few words: `frozen by uid 1000 (pid 4242) at 2026-11-21T10:00:05Z`.
pub fn ordered(order: &Ordered) -> String {
    let what = match order.what {
        OrderKind::Freeze => "frozen",
        OrderKind::Thaw => "thawed",
        OrderKind::Pause => "paused",
        OrderKind::Resume => "resumed",
        OrderKind::Release => "released",
    };
    format!("{what} {}", given(order))
}

/// That the host is frozen, if it is, and by whom.
pub fn frozen(host: &HostStatus) -> Option<String> {
    let order = host.ordered.as_ref().filter(|order| order.what == OrderKind::Freeze);
    let by = order.map_or(String::new(), |order| format!(" {}", given(order)));
    host.frozen.then(|| format!("FROZEN{by}: no VM changes its size until `windlass thaw`"))
}

/// By which process, and when: `by uid 1000 (pid 4242) at 2026-11-21T10:00:05Z`.
fn given(order: &Ordered) -> String {
    let by = order.by.map_or(String::new(), |by| format!("by {by} "));
    format!("{by}at {}", instant(order.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::Moment;
    use windlass_protocol::status::Caller;

    #[test]
    fn an_order_names_the_process_as_far_as_it_is_known() {
        let at = Moment::from_millis(1_795_255_205_000);
        let text = |by| ordered(&Ordered { what: OrderKind::Freeze, at, by });
        let caller = |pid| Some(Caller { uid: 1000, pid });
        assert_eq!(text(caller(Some(42))), "frozen by uid 1000 (pid 42) at 2026-11-21T10:00:05Z");
        assert_eq!(text(caller(None)), "frozen by uid 1000 at 2026-11-21T10:00:05Z");
        assert_eq!(text(None), "frozen at 2026-11-21T10:00:05Z");
    }
}
