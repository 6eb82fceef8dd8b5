//! Whom a token is of, and which node's VMs that caller may ask for.

use super::denied::Denied;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whom a token is of, in the API server's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user: `system:serviceaccount:NAMESPACE:NAME`.
    pub user: Arc<str>,
    /// The groups of that user, which rights may be given to.
    pub groups: Arc<[String]>,
    /// The UID of that user, if there is one.
    pub uid: Option<Arc<str>>,
    /// What else the API server says of the user, which an authorizer may look at.
    pub extra: Arc<BTreeMap<String, Vec<String>>>,
    /// The node of the pod that the token is bound to, if it is bound to one that is on a node.
    pub node: Option<Arc<str>>,
}

// === impl Caller ===

impl Caller {
    /// The node whose VMs the caller may ask for, if it is an agent.
    ///
    /// # Errors
    /// It is none.
    pub fn node_as(&self, agent: &Arc<str>) -> Result<Arc<str>, Denied> {
        if self.user != *agent {
            let (user, agent) = (self.user.clone(), agent.clone());
            return Err(Denied::OtherAccount { user, agent });
        }
        self.node.clone().ok_or(Denied::NoNode)
    }
}
