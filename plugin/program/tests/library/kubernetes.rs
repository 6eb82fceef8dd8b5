//! The table `[kubernetes]` of plugin.toml: what it means, and what is said of one that is wrong.

use crate::files::judged;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::kubernetes::{TlsPaths, TlsSource};
use windlass_plugin_config::lists::Lists;
use windlass_plugin_core::pods::MigrationTerms;
use windlass_protocol::{Bytes, MilliCpu, Resources};

/// A file of a plugin in a cluster that has TLS at no port, with more in its table.
macro_rules! plain {
    ($more:literal) => {
        concat!("[kubernetes]\nplain_permits = \"0.0.0.0:10299\"\nplain_extender = true\n", $more)
    };
}

/// Files of a plugin in a cluster, and what must be said about each.
const CLUSTER: &[(&str, &[&str])] = &[
    (
        "[kubernetes]\ntls = {}\n",
        &[
            "kubernetes.tls.certificate: is missing: an absolute path",
            "kubernetes.tls.key: is missing",
            "kubernetes.tls.client_ca: is missing",
        ],
    ),
    (
        "[kubernetes]\nplain_extender = true\ntls = {}\n",
        &["kubernetes.tls.certificate: is missing", "kubernetes.tls.key: is missing"],
    ),
    (
        "[kubernetes]\nplain_extender = true\nextender = \"0.0.0.0:10297\"\nplain_permits = \"0.0.0.0:10299\"\n",
        &["kubernetes.extender = 0.0.0.0:10297: must be a loopback address"],
    ),
    (
        "[kubernetes]\nplain_extender = true\nplain_permits = \"0.0.0.0:10299\"\ntls.key = \"/k\"\n",
        &["kubernetes.tls.certificate: is missing"],
    ),
    (
        "listen = \"127.0.0.1:10299\"\n[kubernetes]\ntls = { certificate = \"/c\", key = \"/k\", client_ca = \"/a\" }\n",
        &["listen = \"127.0.0.1:10299\": must not be there with [kubernetes]: agents ask at"],
    ),
    (
        "[kubernetes]\ntls = { certificate = \"c\", key = 1, client_ca = \"/a\" }\nagent = \"\"\nscheduler = 1\n",
        &[
            "kubernetes.tls.certificate = \"c\": must",
            "kubernetes.tls.key = 1",
            "kubernetes.scheduler = 1",
            "kubernetes.agent = \"\": must",
        ],
    ),
    (
        "[kubernetes]\nplain_permits = \"127.0.0.1:10297\"\nplain_extender = true\n",
        &[
            "kubernetes.extender = 127.0.0.1:10297: must not be the address of kubernetes.plain_permits",
        ],
    ),
    (
        plain!("kubeconfig = \"config\"\n"),
        &["kubernetes.kubeconfig = \"config\": must be an absolute path"],
    ),
    (
        plain!("reserve = { cpu = 0, memory = \"1GB\" }\n"),
        &[
            "kubernetes.reserve.cpu = 0: must be",
            "kubernetes.reserve.memory = \"1GB\": GB is no unit",
        ],
    ),
    (
        plain!("extendr = \"127.0.0.1:1\"\n"),
        &["kubernetes.extendr = \"127.0.0.1:1\": is not a key; did you mean kubernetes.extender?"],
    ),
    (
        plain!("[[node]]\nname = \"n\"\ncpu = 4\nmemory = \"4GiB\"\n"),
        &["node = a list: must not be there with [kubernetes]"],
    ),
    (
        plain!("namespace = \"a b\"\npool = 1\n"),
        &[
            "kubernetes.namespace = \"a b\": must be 1 to 253 letters",
            "kubernetes.pool = 1: must be any number of [[kubernetes.pool]]",
        ],
    ),
    (
        plain!("[[kubernetes.pool]]\nname = \"a\"\nlabels = {}\nmode = \"resized\"\n"),
        &[
            "kubernetes.pool[a].labels = a table: must be one text or more",
            "kubernetes.pool[a].mode = \"resized\": must be dedicated, headroom or resize; did you mean resize?",
        ],
    ),
    (
        plain!(
            "[[kubernetes.pool]]\nname = \"a\"\nlabels = { a = \"b\" }\nmode = \"resize\"\n\
         headroom = { share = 0.5 }\n"
        ),
        &["kubernetes.pool[a].headroom = a table: must not be there unless mode = \"headroom\""],
    ),
    (
        plain!(
            "[[kubernetes.pool]]\nname = \"a\"\nlabels = { a = \"b\" }\nmode = \"dedicated\"\n\
         headroom = { cpu = 1 }\n"
        ),
        &["kubernetes.pool[a].headroom = a table: must not be there unless mode = \"headroom\""],
    ),
    (
        plain!(
            "[[kubernetes.pool]]\nname = \"a\"\nlabels = { a = 1 }\nmode = \"headroom\"\n\
         headroom = { cpu = 0, memory = 1, share = 2 }\n[[kubernetes.pool]]\n"
        ),
        &[
            "kubernetes.pool[a].labels = a table: ",
            "kubernetes.pool[a].headroom.cpu = 0: must be 0.05 to 4096 vCPUs",
            "kubernetes.pool[a].headroom.memory = 1: must be 1MiB to 1024TiB",
            "kubernetes.pool[a].headroom.share = 2: must be above 0, at most 1; the nearest is 1",
            "kubernetes.pool[#2].name: is missing",
            "kubernetes.pool[#2].labels: is missing",
            "kubernetes.pool[#2].mode: is missing",
        ],
    ),
    (
        plain!(
            "[[kubernetes.pool]]\nname = \"a\"\nlabels = { a = \"1\" }\nmode = \"headroom\"\n\
         [[kubernetes.pool]]\nname = \"a\"\nlabels = { a = \"2\" }\nmode = \"headroom\"\n"
        ),
        &["kubernetes.pool[a].name = a: is listed already"],
    ),
    (
        plain!(
            "migration = { watermark = 0, cordoned = 1, per_node = 0, in_all = 1001, rests = 1, placed_within = \"2d\" }\n"
        ),
        &[
            "kubernetes.migration.watermark = 0: must be above 0, at most 1",
            "kubernetes.migration.cordoned = 1: must be true or false",
            "kubernetes.migration.per_node = 0: must be a whole number from 1 to 1000",
            "kubernetes.migration.in_all = 1001: must be a whole number from 1 to 1000",
            "kubernetes.migration.rests = 1: must be ",
            "kubernetes.migration.placed_within = \"2d\": must be ",
        ],
    ),
];

#[test]
fn vms_leave_nodes_that_have_a_watermark_of_their_pool_or_of_all_or_are_cordoned() {
    let of = |text: &str| {
        let config = PluginConfig::from_toml(&format!("{}{text}", plain!("")), None).unwrap().0;
        config.kubernetes.unwrap().pools
    };
    let usual = of("");
    assert!(!usual.move_vms());
    assert_eq!(usual.migration, MigrationTerms::default());
    let pool = "[[kubernetes.pool]]\nname = \"a\"\nlabels = { a = \"b\" }\nmode = \"dedicated\"\n";
    let pools = of(&format!(
        "migration = {{ watermark = 0.9, per_node = 2, in_all = 6, rests = \"300s\", placed_within = 60 }}\n{pool}watermark = 0.75\n"
    ));
    let labels = [("a".to_owned(), "b".to_owned())].into();
    assert_eq!(pools.watermark_of(&labels), Some(750));
    assert_eq!(pools.watermark_of(&BTreeMap::new()), Some(900));
    let (rests, placed_within) = (Duration::from_secs(300), Duration::from_secs(60));
    assert_eq!(pools.migration, MigrationTerms { per_node: 2, in_all: 6, rests, placed_within });
    assert!(of(&format!("{pool}watermark = 1\n")).move_vms());
    let emptied = of("migration = { cordoned = true }\n");
    assert!(emptied.move_vms() && emptied.empties_cordoned && emptied.watermark.is_none());
}

#[test]
fn a_broken_table_of_a_cluster_is_refused_by_field_value_and_limit() {
    for (text, expected) in CLUSTER {
        let read = PluginConfig::from_toml(text, None).map(drop);
        judged(text, read, expected);
    }
}

#[test]
fn a_cluster_needs_no_lists() {
    let tls = "tls = { certificate = \"/c\", key = \"/k\", client_ca = \"/a\" }\n";
    let text = format!("[kubernetes]\n{tls}");
    let (config, lists) = PluginConfig::from_toml(&text, None).unwrap();
    let usual = config.kubernetes.unwrap();
    let at = |at: Option<SocketAddr>| at.map(|at| at.to_string());
    assert_eq!(at(usual.permits), Some("0.0.0.0:10296".to_owned()));
    assert_eq!(
        (usual.plain_permits, usual.extender.to_string().as_str()),
        (None, "127.0.0.1:10297")
    );
    assert_eq!(files(usual.tls).unwrap().client_ca.unwrap(), Path::new("/a"));
    assert_eq!(usual.scheduler, "system:kube-scheduler");
    assert_eq!(usual.agent, "system:serviceaccount:windlass:windlass-agent");
    assert_eq!((usual.kubeconfig, usual.reserve), (None, Resources::ZERO));
    assert_eq!(lists, Lists::default());
    let text = format!(
        "[kubernetes]\nextender = \"0.0.0.0:7\"\nkubeconfig = \"/etc/windlass/kubeconfig\"\n{tls}\
         permits = \"[::1]:8\"\nplain_permits = \"[::1]:9\"\nscheduler = \"s\"\nagent = \"a\"\n\
         reserve = {{ cpu = 0.5, memory = \"1GiB\" }}\n"
    );
    let of = PluginConfig::from_toml(&text, None).unwrap().0.kubernetes.unwrap();
    assert_eq!(
        (of.extender.to_string().as_str(), at(of.permits)),
        ("0.0.0.0:7", Some("[::1]:8".to_owned()))
    );
    assert_eq!((at(of.plain_permits), of.scheduler.as_str()), (Some("[::1]:9".to_owned()), "s"));
    assert_eq!((of.agent.as_str(), of.plain_extender), ("a", false));
    assert_eq!(of.kubeconfig.unwrap(), Path::new("/etc/windlass/kubeconfig"));
    assert_eq!(of.reserve, Resources::new(MilliCpu::from_milli(500), Bytes::from_gib(1)));
}

#[test]
fn a_plugin_in_a_cluster_has_tls_wherever_it_is_not_told_otherwise() {
    let plain = plain!("");
    let of = |text: &str| PluginConfig::from_toml(text, None).unwrap().0.kubernetes.unwrap();
    let none = of(plain);
    assert_eq!((none.permits, none.tls, none.plain_extender), (None, None, true));
    let both = of(&format!("{plain}tls = {{ certificate = \"/c\", key = \"/k\" }}\n"));
    assert!(both.permits.is_some() && both.plain_permits.is_some());
    assert_eq!(files(both.tls).unwrap().client_ca, None, "the extender needs none");
    // Without files the plugin makes its own.
    for text in [
        "[kubernetes]\n",
        "[kubernetes]\nplain_extender = true\n",
        "[kubernetes]\nplain_permits = \"[::1]:9\"\n",
    ] {
        let own = of(text);
        assert_eq!(own.tls, Some(TlsSource::Own), "{text}");
        assert!(own.permits.is_some());
    }
    let asked = of(&format!("{plain}permits = \"[::1]:8\"\n"));
    assert_eq!((asked.tls, asked.permits.is_some()), (Some(TlsSource::Own), true));
}

fn files(tls: Option<TlsSource>) -> Option<TlsPaths> {
    match tls? {
        TlsSource::Files(paths) => Some(paths),
        TlsSource::Own => None,
    }
}
