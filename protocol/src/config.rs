//! Files that people write: for each a [`Table`] of typed [`Field`]s, from which all else comes.
//!
//! A field states its name, its [`Kind`] (how a value is written, and which are allowed), what holds
//! without it, and what it is for: once. A [`Reader`] reads a file by its table and finds every
//! [`Problem`] of it, not the first; the documents, `windlass check --keys` and the tests come from
//! [`Table::rows`]. Turning a text into [`Node`]s is `kit::config`'s.
//!
//! ```text
//!   text ── kit::config ──► nodes ── Reader (by a Table) ──► values of a program's own type
//!                                        └──► problems: field, value, what may stand there
//! ```

mod field;
mod kind;
mod node;
mod problem;
mod reader;
mod unit;

pub use field::{Field, Form, Row, Table, Value, key};
pub use kind::{Kind, MEMORY, Typed};
pub use node::{Node, memory};
pub use problem::Problem;
pub use reader::Reader;
