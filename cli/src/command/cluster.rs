//! What people read of a cluster's VMs: a table, one VM in sentences, and the VMs with which something is wrong.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use windlass_protocol::neighbours::Findings;
use windlass_protocol::vm_view::{Scaling, Status, VmView, VmViews};
use windlass_protocol::{Moment, Resources, VmName};

const TITLES: [&str; 7] = ["VM", "NODE", "RESERVED", "GOAL", "BOUNDS", "HEARD", "STATE"];

/// All VMs in a table, those that do not follow their load first.
pub(crate) fn table(views: &VmViews) -> String {
    if views.vms.is_empty() {
        return "no VM is on a node\n".to_owned();
    }
    let mut vms: Vec<&VmView> = views.vms.iter().collect();
    // Stable: they come in the order of names.
    vms.sort_by_key(|vm| vm.condition.reason == Scaling::Following);
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(TITLES);
    for vm in vms {
        let bounds = format!("{} to {}", vm.bounds.min, vm.bounds.max);
        let goal = vm.goal.map_or("?".to_owned(), |goal| goal.to_string());
        let state = vm.condition.reason.to_string();
        let reserved = vm.reserved.to_string();
        let (name, node) = (name(&vm.object), vm.node.clone());
        table.add_row([name, node, reserved, goal, bounds, heard(vm, views.at), state]);
    }
    // The first column has no space before it.
    let lines = table.trim_fmt();
    let lines = lines.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
    format!("{}\n{}", lines.collect::<Vec<_>>().join("\n"), left_out(views))
}

/// Each VM in sentences.
pub(crate) fn sentences(views: &VmViews) -> String {
    let all = views.vms.iter().map(|vm| sentence(vm, views.at));
    all.collect::<Vec<_>>().join("\n")
}

fn sentence(vm: &VmView, at: Moment) -> String {
    let VmView { object, pod, node, reserved, condition, .. } = vm;
    let mut lines =
        vec![format!("{} is on node {node}; {reserved} is reserved for it.", name(object))];
    if pod != object {
        lines.push(format!("Its pod is {}.", name(pod)));
    }
    let follows = match condition.reason.status() {
        Status::True => "It follows its load",
        Status::False => "It does not follow its load",
        Status::Unknown => "Nothing tells whether it follows its load",
    };
    lines.push(format!("{follows} ({}): {}", condition.reason, condition.message));
    if let Some(wanted) = vm.wanted {
        lines.push(format!("It asked for {wanted}."));
    }
    if let Some(goal) = vm.goal {
        lines.push(format!("Its load calls for {goal}; its bounds are {}.", bounds(vm)));
    } else {
        lines.push(format!("Its bounds are {}.", bounds(vm)));
    }
    lines.push(match (&vm.told, vm.heard) {
        (_, None) => "No agent has been heard of it yet.".to_owned(),
        (Some(told), Some(_)) if *told != condition.message => {
            format!("Its agent was heard {}, and says: {told}", heard(vm, at))
        }
        (_, Some(_)) => format!("Its agent was heard {}.", heard(vm, at)),
    });
    if let Some(advice) = advice(condition.reason) {
        lines.push(advice.replace("{node}", node));
    }
    lines.join("\n") + "\n"
}

/// The VMs with which something is wrong, and whether there are any.
pub(crate) fn findings(views: &VmViews) -> (String, bool) {
    let wrong: Vec<&VmView> =
        views.vms.iter().filter(|vm| !vm.condition.reason.is_meant()).collect();
    let mut text = String::new();
    for vm in &wrong {
        let (object, reason) = (name(&vm.object), vm.condition.reason);
        text.push_str(&format!("{object} on {}: {reason}: {}\n", vm.node, vm.condition.message));
        if let Some(advice) = advice(reason) {
            text.push_str(&format!("  {}\n", advice.replace("{node}", &vm.node)));
        }
    }
    let (all, many) = (views.vms.len(), wrong.len());
    text.push_str(&match many {
        0 => format!("nothing is wrong with {all} VMs\n"),
        many => format!("something is wrong with {many} of {all} VMs\n"),
    });
    text.push_str(&left_out(views));
    (text, many > 0)
}

/// What other programs do to the VMs, the worst first.
pub(crate) fn neighbours(found: &Findings) -> String {
    let mut text = String::new();
    for finding in &found.findings {
        let named: Vec<String> = finding.pods.iter().map(name).collect();
        let named =
            if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        let kind = if finding.is_wrong { "" } else { "note: " };
        text.push_str(&format!("{kind}{}: {}{named}\n", finding.neighbour, finding.words));
    }
    if found.is_cut {
        text.push_str(&format!("of the pods of VMs, {} were looked at\n", found.looked_at));
    }
    text
}

/// What an operator can do about it.
const fn advice(reason: Scaling) -> Option<&'static str> {
    match reason {
        Scaling::Following
        | Scaling::Moving
        | Scaling::Observing
        | Scaling::PermitWaits
        | Scaling::Other => None,
        Scaling::AgentSilent => Some(
            "Does the agent run there? kubectl --namespace windlass get pods --selector \
             app.kubernetes.io/name=windlass-agent --field-selector spec.nodeName={node}",
        ),
        Scaling::AnnotationsInvalid => Some("Correct the annotation on the object of the VM."),
        Scaling::NodeCordoned => Some(
            "kubectl uncordon {node} lets its VMs grow again. Before you drain it: docs/kubernetes.md says how VMs leave; an eviction ends one.",
        ),
        Scaling::NodeMemoryPressure => {
            Some("kubectl describe node {node} says what takes the memory of the node.")
        }
        Scaling::NodeOverfull | Scaling::NodeFull => Some(
            "Other VMs give room back, or a watermark has VMs move: kubernetes.migration in plugin.toml.",
        ),
        Scaling::PodNotResized => Some("docs/plugin.md says which pods can be resized."),
        Scaling::Paused => {
            Some("The annotation windlass.dev/paused-until of its object says until when.")
        }
        Scaling::HypervisorSilent => {
            Some("The log of the agent on {node} says what the hypervisor answers.")
        }
        Scaling::NotRunning => Some("It is resized once it runs."),
        Scaling::InformantSilent | Scaling::MetricsMissing => Some(
            "Look in the guest: systemctl status windlass-informant. Can the pod of the agent reach it?",
        ),
        Scaling::ResizeStuck => {
            Some("The log of the agent on {node} says what the resize came to.")
        }
        Scaling::HostMemoryShort => Some(
            "Something beside the VMs takes memory of {node}: kubernetes.reserve in plugin.toml.",
        ),
    }
}

fn bounds(vm: &VmView) -> String {
    let show = |size: Resources| size.to_string();
    format!("{} to {}", show(vm.bounds.min), show(vm.bounds.max))
}

fn heard(vm: &VmView, at: Moment) -> String {
    vm.heard.map_or("never".to_owned(), |heard| {
        let seconds = at.since(heard).as_secs();
        format!("{seconds} s ago")
    })
}

fn left_out(views: &VmViews) -> String {
    match views.left_out {
        0 => String::new(),
        many => format!("{many} more VMs are left out: --namespace names fewer\n"),
    }
}

fn name(vm: &VmName) -> String {
    format!("{}/{}", vm.namespace, vm.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use windlass_protocol::vm_view::Condition;
    use windlass_protocol::{Bounds, Bytes, MilliCpu};

    #[test]
    fn a_vm_of_a_full_node_says_so_and_what_to_do() {
        let full =
            "The VM asked for 3 vCPU and may have 1 vCPU: 0 vCPU of the node's 4 vCPU is free.";
        let mut short = vm("db1", Scaling::NodeFull, full);
        short.wanted = Some(cu(3));
        short.told = Some("The VM waits for room on its node: it wants 2 vCPU more.".to_owned());
        expect![[r#"
            shop/db1 is on node n1; 1 vCPU / 1GiB is reserved for it.
            It does not follow its load (NodeFull): The VM asked for 3 vCPU and may have 1 vCPU: 0 vCPU of the node's 4 vCPU is free.
            It asked for 3 vCPU / 3GiB.
            Its load calls for 2 vCPU / 2GiB; its bounds are 1 vCPU / 1GiB to 4 vCPU / 4GiB.
            Its agent was heard 2 s ago, and says: The VM waits for room on its node: it wants 2 vCPU more.
            Other VMs give room back, or a watermark has VMs move: kubernetes.migration in plugin.toml.
        "#]]
        .assert_eq(&sentences(&all(vec![short])));
    }

    #[test]
    fn a_vm_of_a_silent_agent_names_where_to_look() {
        let silent =
            "No agent has asked for the VM since this plugin leads: the VM keeps its size.";
        let mut vm = vm("db1", Scaling::AgentSilent, silent);
        (vm.heard, vm.goal, vm.told) = (None, None, None);
        vm.pod.name = "db1-x7f2".to_owned();
        expect![[r#"
            shop/db1 is on node n1; 1 vCPU / 1GiB is reserved for it.
            Its pod is shop/db1-x7f2.
            Nothing tells whether it follows its load (AgentSilent): No agent has asked for the VM since this plugin leads: the VM keeps its size.
            Its bounds are 1 vCPU / 1GiB to 4 vCPU / 4GiB.
            No agent has been heard of it yet.
            Does the agent run there? kubectl --namespace windlass get pods --selector app.kubernetes.io/name=windlass-agent --field-selector spec.nodeName=n1
        "#]]
        .assert_eq(&sentences(&all(vec![vm])));
    }

    #[test]
    fn a_list_begins_with_what_is_wrong_and_a_check_names_that_alone() {
        let views = all(vec![
            vm("a", Scaling::Following, "The VM has its goal."),
            vm(
                "b",
                Scaling::NodeCordoned,
                "The VM asked for 3 vCPU and may have 1 vCPU: the node is cordoned.",
            ),
            vm("c", Scaling::Paused, "The VM is paused for 60 s more."),
        ]);
        expect![[r#"
            VM      NODE  RESERVED       GOAL           BOUNDS                          HEARD    STATE
            shop/b  n1    1 vCPU / 1GiB  2 vCPU / 2GiB  1 vCPU / 1GiB to 4 vCPU / 4GiB  2 s ago  NodeCordoned
            shop/c  n1    1 vCPU / 1GiB  2 vCPU / 2GiB  1 vCPU / 1GiB to 4 vCPU / 4GiB  2 s ago  Paused
            shop/a  n1    1 vCPU / 1GiB  2 vCPU / 2GiB  1 vCPU / 1GiB to 4 vCPU / 4GiB  2 s ago  Following
        "#]]
        .assert_eq(&table(&views));
        let (text, is_wrong) = findings(&views);
        assert!(is_wrong);
        expect![[r#"
            shop/b on n1: NodeCordoned: The VM asked for 3 vCPU and may have 1 vCPU: the node is cordoned.
              kubectl uncordon n1 lets its VMs grow again. Before you drain it: docs/kubernetes.md says how VMs leave; an eviction ends one.
            something is wrong with 1 of 3 VMs
        "#]]
        .assert_eq(&text);
        let few = VmViews { left_out: 7, ..all(vec![views.vms[0].clone()]) };
        let calm =
            "nothing is wrong with 1 VMs\n7 more VMs are left out: --namespace names fewer\n";
        assert_eq!(findings(&few), (calm.to_owned(), false));
    }

    fn vm(vm: &str, reason: Scaling, message: &str) -> VmView {
        let name = VmName { namespace: "shop".to_owned(), name: vm.to_owned() };
        VmView {
            pod: name.clone(),
            object: name,
            node: "n1".to_owned(),
            bounds: Bounds { min: cu(1), max: cu(4) },
            priority: 0,
            reserved: cu(1),
            wanted: None,
            goal: Some(cu(2)),
            heard: Some(Moment::from_millis(98_000)),
            told: None,
            condition: Condition { reason, message: message.to_owned() },
        }
    }

    fn all(vms: Vec<VmView>) -> VmViews {
        VmViews { at: Moment::from_millis(100_000), vms, left_out: 0 }
    }

    fn cu(count: u64) -> Resources {
        Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
    }
}
