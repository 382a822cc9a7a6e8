//! Where and how a model computes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Device, Engine};
use crate::models::ModelError;

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

/// How a model computes: threads, precision and device never change what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compute {
    /// Threads of the model's team.
    pub threads: usize,
    /// Precision of the products.
    pub precision: Precision,
    /// Where.
    pub device: Device,
}

impl Default for Compute {
    fn default() -> Self {
        Self { threads: 1, precision: Precision::F64, device: Device::Cpu }
    }
}

impl Compute {
    /// The engine that computes so; refuses a device that is not here.
    pub fn engine(self) -> Result<Box<dyn Engine>, ModelError> {
        self.device.engine(self)
    }
}
