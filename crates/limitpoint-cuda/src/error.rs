//! What can be wrong with the card, and what to do about it.

use cudarc::driver::DriverError;

/// What is wrong with the card.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// A library of CUDA is not there.
    #[error("{name} was not found ({library}, looked for where the system looks for libraries)")]
    Library {
        /// What it is.
        name: &'static str,
        /// The name of its file.
        library: &'static str,
    },
    /// No card, or none that works.
    #[error("there is no card that works ({0})")]
    NoCard(DriverError),
    /// Something failed on the way.
    #[error("{doing} failed: {source}")]
    Driver {
        /// What was done.
        doing: &'static str,
        /// What the driver says.
        source: DriverError,
    },
    /// Not enough memory, or no card any more.
    #[error("{bytes} bytes of the card's memory could not be had: {source}")]
    Memory {
        /// Bytes asked for.
        bytes: usize,
        /// What the driver says.
        source: DriverError,
    },
    /// A matrix product failed.
    #[error("a matrix product failed: {0}")]
    Product(cudarc::cublas::result::CublasError),
    /// A side that a product cannot have.
    #[error("a matrix has a side of {0}, more than products take")]
    TooLong(usize),
    /// The kernels could not be compiled.
    #[error("the kernels could not be compiled: {0}")]
    Kernels(String),
}

impl CardError {
    /// An error of the driver, with what was done.
    pub(crate) fn driver(doing: &'static str) -> impl Fn(DriverError) -> Self {
        move |source| Self::Driver { doing, source }
    }

    /// A length as kernels and products take it.
    pub(crate) fn length(length: usize) -> Result<i32, Self> {
        i32::try_from(length).map_err(|_| Self::TooLong(length))
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Library { .. } => {
                "install the NVIDIA driver and CUDA 13 or its packages nvidia-cuda-nvrtc and nvidia-cublas, put their folders on \
                 LD_LIBRARY_PATH, or leave --device out"
            }
            Self::NoCard(_) => "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or leave --device out",
            Self::Memory { .. } => "end other programs on the card, or leave --device out",
            // the same again would fail again
            Self::TooLong(_) | Self::Kernels(_) => "leave --device out: the CPU computes it",
            Self::Driver { .. } | Self::Product(_) => "go on from the last checkpoint, or leave --device out",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_remedy() {
        let missing = CardError::Library { name: "the driver of the card", library: "libcuda" };
        assert!(missing.to_string().contains("libcuda") && missing.remedy().contains("--device"));
        assert!(CardError::TooLong(1 << 40).remedy().contains("CPU"));
    }
}
