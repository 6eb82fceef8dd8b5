//! The label by which the agent of a node watches the objects of its VMs.

/// The label with the node that runs the VM of an object. An agent sets it, and chooses by it what it watches.
pub const NODE: &str = "windlass.dev/node";

/// The longest value of a label.
const LONGEST: usize = 63;

/// The value of the label for a node: its name, or, where that is too long, the begin of it and a hash of all of it.
pub fn node_label(node: &str) -> String {
    if node.len() <= LONGEST {
        return node.to_owned();
    }
    // FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv
    let hash = node.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = format!("{hash:016x}");
    let begin: String = node.chars().take(LONGEST - 1 - hash.len()).collect();
    format!("{begin}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_a_node_is_its_name_as_long_as_a_label_can_have_it() {
        let name = "n".repeat(63);
        assert_eq!(node_label(&name), name);
        let (a, b) = (node_label(&format!("{name}a")), node_label(&format!("{name}b")));
        assert_eq!((a.len(), b.len()), (63, 63));
        assert!(a != b && a.starts_with(&name[..46]), "{a} {b}");
        assert!(a.ends_with(|c: char| c.is_ascii_hexdigit()), "{a}");
    }
}
