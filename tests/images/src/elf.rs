//! What a program needs besides itself: an interpreter, which loads it, and shared libraries.
//!
//! Of programs of 64 bits in the byte order of this machine, which are all that the machine runs.

/// The segment that names an interpreter (`PT_INTERP`).
const INTERPRETER: u64 = 3;
/// The segment of what an interpreter reads (`PT_DYNAMIC`). A static program at no fixed address has it, too.
const DYNAMIC: u64 = 2;
/// The entry of such a segment that names a shared library (`DT_NEEDED`).
const LIBRARY: u64 = 1;

/// How many interpreters and shared libraries a program names.
///
/// # Panics
/// If this is no program of 64 bits.
pub fn needs(program: &[u8]) -> usize {
    assert_eq!(&program[..5], b"\x7fELF\x02", "no program of 64 bits");
    let at = |place: u64, size: usize| {
        let place = usize::try_from(place).unwrap();
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&program[place..place + size]);
        u64::from_le_bytes(bytes)
    };
    let (table, size, count) = (at(32, 8), at(54, 2), at(56, 2));
    let segments = (0..count).map(|number| table + number * size);
    segments
        .map(|segment| match at(segment, 4) {
            INTERPRETER => 1,
            DYNAMIC => {
                let (from, long) = (at(segment + 8, 8), at(segment + 32, 8));
                let entries = (from..from + long).step_by(16);
                entries.filter(|entry| at(*entry, 8) == LIBRARY).count()
            }
            _ => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_static_needs_an_interpreter_and_libraries() {
        let own = std::env::current_exe().unwrap();
        assert!(needs(&std::fs::read(own).unwrap()) > 1);
    }
}
