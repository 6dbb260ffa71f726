//! Helpers that the integration tests share. Each test uses a part of them.
#![allow(dead_code)]

pub mod models;
pub mod ports;
pub mod ring;
pub mod traffic;
