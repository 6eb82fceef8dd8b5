//! One target under libFuzzer: `WINDLASS_FUZZ=monitor windlass-fuzz CORPUS…`, by `make fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use windlass_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("WINDLASS_FUZZ").unwrap_or_default();
    Target::find(&name).unwrap_or_else(|| {
        let known = windlass_fuzz::TARGETS.map(|target| target.name).join(", ");
        panic!("WINDLASS_FUZZ={name}: must be one of {known}")
    })
});

fuzz_target!(|data: &[u8]| TARGET.run(data));
