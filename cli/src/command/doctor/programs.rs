//! windlass-agent and windlass-plugin, as far as they can be asked: whether they live, and whether the
//! agent reaches its plugin.

use super::files::Read;
use super::report::Check;
use crate::command::configured::Configured;
use axum::http::Method;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use windlass_agent::PluginAt;
use windlass_kit::client::{Address, Ask, ClientError, ask};

/// How long a program or an informant may take; a person waits.
pub(super) const WITHIN: Duration = Duration::from_secs(2);

/// What a program that has a file of its own says, by its name.
pub(super) async fn checks(files: &Read) -> Option<(&'static str, Vec<Check>)> {
    match files.config.as_ref().ok()? {
        Configured::Agent(config) => {
            let lives = files.found_here(lives("windlass-agent", config.basics.admin).await);
            let plugin = files.found_here(plugin(&config.plugin).await);
            Some(("agent", vec![lives, plugin]))
        }
        Configured::Plugin(config) => {
            let lives = files.found_here(lives("windlass-plugin", config.admin).await);
            Some(("plugin", vec![lives]))
        }
        Configured::Host(_) | Configured::Vms => None,
    }
}

/// Whether each part of this program is alive.
pub(super) async fn lives(program: &str, admin: SocketAddr) -> Check {
    let page = "docs/troubleshooting.md#the-host-does-nothing";
    match get(admin, "/livez").await {
        Ok((200, _)) => Check::good(format!("every part of {program} is alive ({admin}/livez)")),
        Ok((_, said)) => {
            let found = format!("{admin}/livez: {}", said.trim());
            Check::failed(found, "systemd starts it anew.", page)
        }
        Err(error) => {
            let found = format!("{program} does not answer at {admin}/livez: {error}");
            let unit = program.replace(' ', "-");
            let advice = format!(
                "`systemctl status {unit}` says whether it runs. If it does, has another process the port?"
            );
            Check::failed(found, &advice, page)
        }
    }
}

/// Whether the agent's plugin can be reached.
async fn plugin(plugin: &PluginAt) -> Check {
    let at = plugin.authority();
    let connected = timeout(WITHIN, TcpStream::connect(&*at)).await;
    let why = match connected {
        Ok(Ok(_)) => return Check::good(format!("the plugin listens at {at}")),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer in {}s", WITHIN.as_secs()),
    };
    let key = if plugin.has_tls() {
        "`kubernetes.permits`"
    } else {
        "`listen` or `kubernetes.plain_permits`"
    };
    let advice =
        format!("Without it no VM grows. Does windlass-plugin run, and is this its {key}?");
    Check::failed(
        format!("no plugin listens at {at}: {why}"),
        &advice,
        "docs/plugin.md#while-it-is-gone",
    )
}

/// The status and the text of an answer.
pub(super) async fn get(at: SocketAddr, path: &str) -> Result<(u16, String), ClientError> {
    let request = Ask::new(Method::GET, path, "").within(WITHIN).at_most(1 << 20);
    let answer = ask(&Address::Tcp(at), request).await?;
    Ok((answer.status, String::from_utf8_lossy(&answer.body).into_owned()))
}
