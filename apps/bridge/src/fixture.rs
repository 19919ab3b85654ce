//! A bridge for unit tests: in a domain of its own, linked to nobody.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use outlive::{Domain, Node, NodeBuilder};

use crate::config::Config;
use crate::link::{Link, session};
use crate::local::speakers::NODE_NAME;
use crate::ros2::Known;
use crate::shared::Shared;

static ALONE: AtomicU32 = AtomicU32::new(0);

/// A domain; removed at the end.
pub(crate) struct Alone {
    root: PathBuf,
}

impl Alone {
    pub(crate) fn new(test: &str) -> Self {
        let n = ALONE.fetch_add(1, Relaxed);
        let root = format!("/dev/shm/outlive-test-olb-{test}-{}-{n}", std::process::id());
        std::fs::DirBuilder::new().mode(0o700).create(&root).expect("a folder on the RAM disk");
        Self { root: root.into() }
    }

    fn settings(&self) -> NodeBuilder {
        Node::builder().root(&self.root).domain("alone")
    }

    pub(crate) fn node(&self, name: &str) -> Node {
        self.settings().name(name).open().expect("a node")
    }

    /// One that has just begun.
    pub(crate) fn bridge(&self) -> Arc<Shared> {
        self.bridge_with("")
    }

    /// The same with more in its file.
    pub(crate) fn bridge_with(&self, rules: &str) -> Arc<Shared> {
        let text = format!(
            "namespace = \"alone\"\nlisten = [\"tcp/127.0.0.1:0\"]\n\
             [[topic]]\npattern = \"/**\"\n{rules}"
        );
        let config = Config::parse("alone.toml", &text, Known::default()).expect("a good file");
        let domain = Domain::of(&self.settings()).expect("a domain");
        let session = session::open(&config, &Arc::default()).expect("a link to nobody");
        let session = session.expect("it is not to end");
        let link = Link::new(session, &config.namespace);
        Arc::new(Shared::new(config, self.node(NODE_NAME), domain, link))
    }

    /// Runs `what` while there is no folder at `path`.
    pub(crate) fn without(&self, path: &Path, what: impl FnOnce()) {
        let aside = self.root.join("aside");
        std::fs::rename(path, &aside).expect("our own");
        std::fs::write(path, "").expect("a file");
        what();
        std::fs::remove_file(path).expect("our own");
        std::fs::rename(&aside, path).expect("our own");
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
