//! A VM of NeonVM that moves to another node.

use serde_json::json;
use windlass_drivers_neonvm_core::Writes;
use windlass_protocol::RunState;
use windlass_protocol::vm_object::Machine;

/// It was placed there with what it had.
#[test]
fn a_vm_that_is_about_to_move_or_moves_keeps_its_size() {
    for (phase, state) in [
        ("Running", RunState::Running),
        ("Scaling", RunState::Running),
        ("PreMigrating", RunState::Migrating),
        ("Migrating", RunState::Migrating),
        ("Succeeded", RunState::ShutDown),
        ("Pending", RunState::Unknown),
    ] {
        let object = json!({
            "metadata": {"name": "a"},
            "spec": {"guest": {
                "cpus": {"min": 1, "max": 4, "use": 2},
                "memorySlots": {"min": 1, "max": 4, "use": 2},
            }},
            "status": {"phase": phase, "cpus": 2, "memorySize": "2Gi"},
        });
        let machine: Machine = serde_json::from_value(object).unwrap();
        assert_eq!(Writes::default().seen(&machine).unwrap().state, state, "{phase}");
    }
}
