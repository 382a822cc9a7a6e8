//! Where and how a model computes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Engine;
use super::cpu::Cpu;

/// The number a network computes in; parameters and gradients are doubles either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 64 bits.
    #[default]
    F64,
    /// 32 bits inside the products.
    F32,
}

/// How a model computes: threads and precision never change what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compute {
    /// Threads of the model's team.
    pub threads: usize,
    /// Precision of the products.
    pub precision: Precision,
}

impl Default for Compute {
    fn default() -> Self {
        Self { threads: 1, precision: Precision::F64 }
    }
}

impl Compute {
    /// The engine that computes so.
    pub fn engine(self) -> Box<dyn Engine> {
        Box::new(Cpu(self))
    }
}
