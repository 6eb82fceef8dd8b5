//! Finding and limiting, in folders that look like the kernel's.

mod find;
mod limit;
mod tree;
mod units;
