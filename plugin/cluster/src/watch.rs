//! Follows the nodes, pods, VMs' own objects and migrations of the API server.

use crate::books::ClusterBooks;
use crate::migration_object::MigrationObject;
use std::convert::Infallible;
use windlass_kit_kubernetes::objects::{MachineObject, NodeObject, PodObject};
use windlass_kit_kubernetes::{Following, Manner, Told, follow};

/// Follows the nodes until told to stop. They are listed anew when the process begins to lead.
///
/// # Errors
/// None.
pub async fn nodes(books: ClusterBooks, following: Following) -> Result<(), Infallible> {
    let manner = Manner { anew: Some(books.lists()), ..Manner::default() };
    follow::<NodeObject>("nodes", manner, following, |told| match told {
        Told::All(nodes, epoch) => books.nodes_listed_in(epoch, nodes),
        Told::Seen(node) => books.node_seen(node),
        Told::Gone(node) => books.node_gone(&node.name),
    })
    .await
}

/// Follows the pods until told to stop. They are listed anew when the process begins to lead.
///
/// # Errors
/// None.
pub async fn pods(books: ClusterBooks, following: Following) -> Result<(), Infallible> {
    let manner = Manner { anew: Some(books.lists()), ..Manner::default() };
    follow::<PodObject>("pods", manner, following, |told| match told {
        Told::All(pods, epoch) => books.pods_listed_in(epoch, pods),
        Told::Seen(pod) => books.pod_seen(pod),
        Told::Gone(pod) => books.pod_gone(&pod.name, &pod.uid),
    })
    .await
}

/// Follows the objects of VMs that are not pods until told to stop. They are listed anew when the process begins to lead.
///
/// # Errors
/// None.
pub async fn objects(books: ClusterBooks, following: Following) -> Result<(), Infallible> {
    let manner = Manner { anew: Some(books.lists()), ..Manner::default() };
    follow::<MachineObject>("objects", manner, following, |told| match told {
        Told::All(all, epoch) => books.objects_listed_in(epoch, all),
        Told::Seen(object) => books.object_seen(object),
        Told::Gone(object) => books.object_gone(&object.name, &object.uid),
    })
    .await
}

/// Follows the migrations of VMs until told to stop.
///
/// # Errors
/// None.
pub async fn migrations(books: ClusterBooks, following: Following) -> Result<(), Infallible> {
    follow::<MigrationObject>("migrations", Manner::default(), following, |told| match told {
        Told::All(migrations, _) => books.migrations_listed(migrations),
        Told::Seen(migration) => books.migration_seen(migration),
        Told::Gone(migration) => books.migration_gone(&migration),
    })
    .await
}
