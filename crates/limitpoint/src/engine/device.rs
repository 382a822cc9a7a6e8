//! Where models are computed.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::cpu::Cpu;
use super::{Compute, Engine};
use crate::models::ModelError;

/// A device that has an engine.
///
/// Words, as the command line takes them: `cpu`, `cuda`.
///
/// ```
/// use limitpoint::engine::{Compute, Device};
/// let device: Device = "cuda".parse()?;
/// assert_eq!((device, device.to_string()), (Device::Cuda, "cuda".to_owned()));
/// // the library alone has no engine for a card, and says who has
/// let refused = Compute { device, ..Compute::default() }.engine().err().unwrap().to_string();
/// assert!(refused.contains("limitpoint-cuda"), "{refused}");
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// The first NVIDIA card.
    Cuda,
}

/// Makes an engine for a device, or says what is missing.
pub type Maker = fn(Compute) -> Result<Box<dyn Engine>, ModelError>;

static CUDA: OnceLock<Maker> = OnceLock::new();

/// Makes an engine for cards known to this process; the first one offered stays.
pub fn offer_cuda(maker: Maker) {
    let _ = CUDA.set(maker);
}

impl Device {
    /// Whether it is the processor, which records need not say.
    pub fn is_cpu(&self) -> bool {
        *self == Self::Cpu
    }

    /// The engine of this device.
    pub(super) fn engine(self, compute: Compute) -> Result<Box<dyn Engine>, ModelError> {
        match (self, CUDA.get()) {
            (Self::Cpu, _) => Ok(Box::new(Cpu(compute))),
            (Self::Cuda, Some(make)) => make(compute),
            (Self::Cuda, None) => Err(ModelError::Device {
                device: "cuda",
                problem: "this program was built without limitpoint-cuda".into(),
                remedy: "build it with the feature cuda, or leave the device out".into(),
            }),
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Self::Cpu { "cpu" } else { "cuda" })
    }
}

impl std::str::FromStr for Device {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            _ => Err(ModelError::NoDevice { text: text.to_owned() }),
        }
    }
}
