//! Calls and answers that have no room here.

use std::sync::Arc;

use outlive::ErrorKind;

use crate::report::stats::Counted;
use crate::shared::Shared;

/// What has no room here is counted as dropped, by service.
pub(super) struct Limited {
    pub(super) shared: Arc<Shared>,
    pub(super) what: String,
    counted: Counted,
}

impl Limited {
    pub(super) fn new(shared: &Arc<Shared>, name: &str) -> Self {
        let what = format!("service {name}");
        let counted = shared.stats.of(false, &what);
        Self { shared: shared.clone(), what, counted }
    }

    /// A call or an answer was not passed on; `fits`: it has a length of its type.
    pub(super) fn count(&self, e: &outlive::Error, fits: bool) {
        use ErrorKind::{InvalidArgument, NoSpace, WouldBlock};
        if fits && matches!(e.kind(), InvalidArgument | NoSpace | WouldBlock) {
            self.counted.with(|c| c.dropped += 1);
            self.shared.say_failed(format_args!(
                "{}: a call or an answer is refused ({:?}): its reader is behind, the RAM disk is \
                 full, or publisher_bytes and total_bytes in [limits] allow no more",
                self.what,
                e.kind()
            ));
        }
    }
}
