//! Named places where a test may kill the process. They cost nothing unless the feature
//! `crash-points` is on, which only the kill harness turns on.

/// Marks a place where dying must be harmless; `name` is unique in the crate.
#[macro_export]
#[doc(hidden)]
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "crash-points")]
        $crate::crash::hit($name);
    };
}

#[cfg(feature = "crash-points")]
pub use hook::{hit, set_hook};

#[cfg(feature = "crash-points")]
mod hook {
    use std::sync::OnceLock;

    static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

    /// Calls the harness's hook.
    pub fn hit(name: &'static str) {
        if let Some(hook) = HOOK.get() {
            hook(name);
        }
    }

    /// Sets the hook, once per process.
    pub fn set_hook(hook: fn(&'static str)) {
        let _ = HOOK.set(hook);
    }
}
