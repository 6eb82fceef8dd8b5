//! The endpoint of permits by itself: what is refused is refused in our words, whoever serves it.

use axum::body::{Bytes, to_bytes};
use axum::http::Request;
use windlass_kit::clock::Clock;
use windlass_plugin::Endpoint;
use windlass_plugin::http::read;
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_program::Plugin;
use windlass_protocol::Moment;

const LIST: &str = "[[node]]\nname = \"n\"\ncpu = 4\nmemory = \"4GiB\"\n";

#[tokio::test]
async fn a_body_of_any_size_is_read_to_the_limit_and_refused_with_it() {
    let (config, lists) = PluginConfig::from_toml(LIST, None).unwrap();
    let plugin = Plugin::new(config, &lists, Clock::starting_at(Moment::from_millis(1)));
    // Frameworks have a limit of 2 MB of their own.
    for size in [1_025, 60_000, 3_000_000] {
        let request = Request::post("/").body(Bytes::from(vec![b' '; size])).unwrap();
        let answer = Endpoint(plugin.clone()).respond(read(&request)).await;
        assert_eq!(answer.status(), 400, "{size}");
        let words = to_bytes(answer.into_body(), 1_024).await.unwrap();
        let words = String::from_utf8(words.to_vec()).unwrap();
        let expected = "bad JSON: body: longer than 1024 bytes, of which no more are read";
        assert!(words.starts_with(expected), "{size}: {words}");
    }
}
