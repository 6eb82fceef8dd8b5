//! How fast and how small Windlass is, with real guests: figures, printed and never judged.
//!
//! A clock on a busy machine says more about the machine than about the program. So each time
//! is printed beside that of the same burst in the same run, met by the lab itself over QMP:
//! the least that the mechanism takes. What Windlass adds is the ratio.

mod arguments;
mod burst;
mod host;
mod print;
mod run;
mod sizes;
mod summary;

use arguments::Arguments;
use std::io::Write;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    if arguments.help {
        return Ok(std::io::stdout().write_all(arguments::HELP.as_bytes())?);
    }
    run::run(&arguments).await
}
