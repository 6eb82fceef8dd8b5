//! What listed VMs take of memory: a plugin of 1,000 VMs is to keep to 12 MiB, of which it takes nearly 9 with one.

use super::Plugin;
use std::fmt::Write;
use std::fs;

/// In KiB. Three quarters of it is what the books and the lists keep of each VM, a quarter what the allocator keeps of the thread
/// that read the lists.
const MOST: u64 = 2_048;

#[test]
fn a_thousand_listed_vms_take_little_more_memory_than_one() {
    let more = taken(1_000).saturating_sub(taken(1));
    assert!(more <= MOST, "999 VMs take {more} KiB");
}

/// Memory that is no file's, in KiB, of a plugin of so many VMs, each of which was granted a permit.
fn taken(vms: usize) -> u64 {
    let mut lists = "[[node]]\nname = \"n\"\ncpu = 4096\nmemory = \"4TiB\"\n".to_owned();
    for vm in 0..vms {
        writeln!(lists, "[[vm]]\nname = \"vm{vm}\"\nnode = \"n\"").unwrap();
        writeln!(lists, "min = {{ cpu = 1, memory = \"1GiB\" }}").unwrap();
        writeln!(lists, "max = {{ cpu = 4, memory = \"4GiB\" }}").unwrap();
    }
    let plugin = Plugin::start(&lists);
    for vm in 0..vms {
        assert_eq!(plugin.permit(&format!("vm{vm}"), 1, 8).0, 200);
    }
    let status = fs::read_to_string(format!("/proc/{}/status", plugin.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
