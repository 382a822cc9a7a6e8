//! Buffers on the card, and parameters that stay there.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, result};
use limitpoint::params::Elsewhere;

use super::error::CardError;

/// Bytes on the card.
pub(crate) struct Memory {
    /// Keeps the bytes.
    _bytes: CudaSlice<u8>,
    /// Where they are.
    pub at: u64,
    /// How many.
    length: usize,
    stream: Arc<CudaStream>,
}

impl Memory {
    /// This many bytes, all zero.
    pub fn zeros(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, CardError> {
        let bytes = bytes.max(8);
        let slice = stream.alloc_zeros::<u8>(bytes).map_err(|source| CardError::Memory { bytes, source })?;
        let at = slice.device_ptr(stream).0;
        Ok(Self { _bytes: slice, at, length: bytes, stream: stream.clone() })
    }

    /// Writes numbers at this many bytes from the beginning, in the order of the stream. `from` must stay as it is until the
    /// stream has come so far, unless it is ordinary memory, which the driver copies first.
    pub fn write<T: Copy>(&self, offset: usize, from: &[T]) -> Result<(), CardError> {
        assert!(offset + size_of_val(from) <= self.length, "numbers fit in what was asked for");
        // SAFETY: they do.
        unsafe { result::memcpy_htod_async(self.at + offset as u64, from, self.stream.cu_stream()) }
            .map_err(CardError::driver("copying to the card"))
    }

    /// Reads numbers from the beginning, and waits for them.
    pub fn read<T: Copy>(&self, into: &mut [T]) -> Result<(), CardError> {
        assert!(size_of_val(into) <= self.length, "numbers fit in what was asked for");
        // SAFETY: they do.
        unsafe { result::memcpy_dtoh_async(into, self.at, self.stream.cu_stream()) }
            .and_then(|()| self.stream.synchronize())
            .map_err(CardError::driver("copying from the card"))
    }
}

/// Parameters in 64 bits on the card.
pub(crate) struct Master(pub Memory);

impl Elsewhere for Master {
    fn bring(&self, into: &mut [f64]) -> Result<(), String> {
        let here = self.0.stream.context().bind_to_thread().map_err(CardError::driver("reaching the card"));
        here.and_then(|()| self.0.read(into)).map_err(|error| error.to_string())
    }
}
