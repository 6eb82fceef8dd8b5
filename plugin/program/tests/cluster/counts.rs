//! What the program counts of the scheduler, by the names of `docs/metrics.md`.

use crate::vms::Vms;
use crate::{Cluster, cluster};

#[tokio::test]
async fn calls_and_bindings_are_counted_by_what_came_of_them() {
    let Cluster { plugin, .. } = cluster().await;
    let vms = Vms::new(cluster().await).await;
    vms.space.node("one", "4", "16Gi").await;
    vms.vm("vm", 1).await;
    vms.bound("vm").await;
    let (status, said) = plugin.extend("filter", "{}");
    assert_eq!((status, said.as_str()), (400, "filter: Pod: is missing\n"));
    assert_eq!(plugin.extend("nothing", "{}").0, 404);
    let metrics = plugin.metrics();
    for series in [
        r#"windlass_plugin_extender_calls_total{verb="filter",answer="some"} "#,
        r#"windlass_plugin_extender_calls_total{verb="filter",answer="bad-request"} 1"#,
        r#"windlass_plugin_extender_calls_total{verb="bind",answer="some"} "#,
        r#"windlass_plugin_bindings_total{answer="bound"} "#,
    ] {
        assert!(metrics.contains(series), "{series} is not in:\n{metrics}");
    }
}
