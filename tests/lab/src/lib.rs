//! Makes images, boots guests, makes load, and checks from outside.
//!
//! A [`Lab`] has what a guest needs; a [`Guest`] is one QEMU process with our load program
//! (and an informant, if the lab has one) inside. What a guest has is asked of QEMU over a
//! monitor of the lab's own ([`Outside`]) and of the guest's kernel by the load program
//! ([`Inside`]), never of Windlass: the lab links nothing of it. Demo, end-to-end tests and
//! benches use it; the product never starts a VM.

mod accel;
mod address;
mod cpio;
mod error;
mod group;
mod guest;
mod image;
mod inside;
mod lab;
mod outside;
pub mod proxy;
mod qmp;
mod sampler;
mod snapshot;
mod spec;
pub mod wait;

pub use accel::Accel;
pub use error::LabError;
pub use group::{Group, groups_can_be_made};
pub use guest::Guest;
pub use inside::Inside;
pub use lab::Lab;
pub use outside::{Outside, VirtioMem};
pub use qmp::Qmp;
pub use sampler::{Point, Sampler};
pub use spec::{Extension, GuestSpec};
pub use windlass_testkit::{Folder, leash};
