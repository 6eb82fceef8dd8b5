//! The images that `dev/images` makes, as a runtime of containers sees them.
//!
//! They are read by other tools than those that made them, and their programs run in a root that has what an image and
//! Kubernetes put there, and nothing else. Links nothing of Windlass.
//!
//! - [`image`]: an archive, its parts, and the references between them.
//! - [`elf`]: what a program needs besides itself.
//! - [`root`]: the files of an image, and its program in them.
//! - [`name_server`]: a name server of a cluster.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test that called it")]

pub mod elf;
pub mod image;
pub mod name_server;
pub mod root;
