//! The Rust examples of `docs`, of the book and of the README, run as written.
//!
//! A page shows whole programs or the inside of `main`, as a reader would write them. The build
//! script adds what only a test needs: a directory of its own for `Node::open`, removed at the end.

#[cfg(doctest)]
include!(concat!(env!("OUT_DIR"), "/pages.rs"));
