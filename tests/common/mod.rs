//! What the integration tests share. Each of them uses a part of it.
#![allow(dead_code)]

pub mod ports;
pub mod ring;
pub mod traffic;
