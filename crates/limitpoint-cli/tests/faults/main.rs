//! What can go wrong around a run: two owners, changed data, damaged files, a later stop, folders that move, a full
//! disk. Nothing may be lost, nothing damaged may be accepted without a word, nothing may panic.

#![cfg(unix)]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

#[path = "../home/mod.rs"]
mod home;

mod damage;
mod data;
mod extension;
mod failures;
mod owners;
mod places;
mod space;
mod tools;
