//! What billing is told where nothing but the receiver is said.

use windlass_agent_billing::Config;
use windlass_agent_billing::config::KEYS;
use windlass_kit::config::read;
use windlass_protocol::config::Table;

const TABLE: Table = Table::toml(&[KEYS]);

pub(crate) fn usual(url: &str) -> Config {
    let mut file = read(&TABLE, &format!("billing.url = \"{url}\"")).unwrap();
    let config = Config::read(&mut file);
    file.finish(config).unwrap()
}
