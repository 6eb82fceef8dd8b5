//! The volumes of a pod as folders: ConfigMaps, Secrets, and tokens of its service account.

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount, Volume};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The audience of tokens that are shown to the API server.
pub(super) const OF_API_SERVER: &str = "https://kubernetes.default.svc";

/// Where the pod has its volumes, and where they are. Folders of its node are left out: a test says which those are.
pub(super) fn folders(pod: &Pod, folder: &Path) -> BTreeMap<String, PathBuf> {
    let spec = pod.spec.clone().unwrap_or_default();
    let volumes = spec.volumes.unwrap_or_default();
    let is_of_node =
        |name: &str| volumes.iter().any(|volume| volume.name == name && volume.host_path.is_some());
    let mounts = spec.containers.into_iter().flat_map(|it| it.volume_mounts.unwrap_or_default());
    let own = mounts.filter(|mount| !is_of_node(&mount.name));
    own.map(|mount| (mount.mount_path, folder.join(mount.name))).collect()
}

/// The files of its volumes; nothing as long as one of these objects is not there.
pub(super) async fn files(
    client: &Client,
    pod: &Pod,
    folder: &Path,
) -> kube::Result<Option<BTreeMap<PathBuf, String>>> {
    let volumes = pod.spec.clone().unwrap_or_default().volumes.unwrap_or_default();
    let mut files = BTreeMap::new();
    for volume in volumes {
        let folder = folder.join(&volume.name);
        let Some(texts) = texts(client, pod, volume).await? else { return Ok(None) };
        files.extend(texts.into_iter().map(|(name, text)| (folder.join(name), text)));
    }
    Ok(Some(files))
}

async fn texts(
    client: &Client,
    pod: &Pod,
    volume: Volume,
) -> kube::Result<Option<BTreeMap<String, String>>> {
    let namespace = pod.namespace().unwrap();
    if let Some(map) = volume.config_map {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        return Ok(maps.get_opt(&map.name).await?.map(|map| map.data.unwrap_or_default()));
    }
    if let Some(secret) = volume.secret {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
        let secret = secrets.get_opt(&secret.secret_name.unwrap()).await?;
        let text = |(name, ByteString(bytes))| (name, String::from_utf8(bytes).unwrap());
        let data = secret.map(|secret| secret.data.unwrap_or_default());
        return Ok(data.map(|data| data.into_iter().map(text).collect()));
    }
    let mut texts = BTreeMap::new();
    for source in volume.projected.and_then(|it| it.sources).unwrap_or_default() {
        let wanted = source.service_account_token.expect("the harness projects tokens alone");
        let audience = wanted.audience.unwrap_or_else(|| OF_API_SERVER.to_owned());
        let seconds = wanted.expiration_seconds.unwrap_or(3600);
        texts.insert(wanted.path, token(client, pod, &audience, seconds).await?);
    }
    Ok(Some(texts))
}

/// A token of the pod's service account, bound to the pod.
pub(super) async fn token(
    client: &Client,
    pod: &Pod,
    audience: &str,
    seconds: i64,
) -> kube::Result<String> {
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).unwrap();
    let bound =
        json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid()});
    let spec = json!({
        "audiences": [audience], "expirationSeconds": seconds, "boundObjectRef": bound,
    });
    let request: TokenRequest = serde_json::from_value(json!({"spec": spec})).unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
    let made = accounts.create_token_request(&account, &PostParams::default(), &request).await?;
    Ok(made.status.unwrap().token)
}
