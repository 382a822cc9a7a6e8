//! The code of the kernels: its sources, the names in it, and how it is compiled once for a generation of cards.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::nvrtc::{self, CompileError, CompileOptions, Ptx};

use super::card::Number;
use super::error::CardError;
use super::tensor;

const SOURCE: &str = include_str!("kernels.cu");
/// Products in 32 bits, on cards that have units for them.
const TENSOR_SOURCE: &str = concat!(include_str!("tiles.cu"), include_str!("tensor.cu"));
/// Every kernel of the first source.
const KERNELS: [&str; 14] = [
    "gather",
    "flatten",
    "columns",
    "images",
    "pool",
    "unpool",
    "unpool_apart",
    "add_bias",
    "bias_gradient",
    "add_up",
    "activate",
    "slopes",
    "round_to",
    "update",
];
/// The generation of a card, such as 90.
pub(crate) fn generation(context: &CudaContext) -> Result<i32, CardError> {
    let asking = CardError::driver("asking for the card's generation");
    let [major, minor] = [
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ]
    .map(|attribute| context.attribute(attribute));
    Ok(10 * major.map_err(&asking)? + minor.map_err(&asking)?)
}

/// Whether cards of a generation have units for products in these numbers. In 64 bits cuBLAS uses them.
pub(crate) fn has_units(number: Number, generation: i32) -> bool {
    number == Number::F32 && generation >= tensor::GENERATION
}

/// Every kernel, of the second source where it is compiled too.
pub(crate) fn names(tensor: bool) -> impl Iterator<Item = &'static str> {
    KERNELS.into_iter().chain(tensor::KERNELS.into_iter().flatten().filter(move |_| tensor))
}

/// The kernels for these numbers on this generation of cards, compiled once in a process.
pub(crate) fn kernels(number: Number, generation: i32) -> Result<Ptx, CardError> {
    static COMPILED: OnceLock<Mutex<HashMap<(Number, i32), Ptx>>> = OnceLock::new();
    let mut compiled = COMPILED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = compiled.get(&(number, generation)) {
        return Ok(found.clone());
    }
    let code = compile(number, generation)?;
    compiled.insert((number, generation), code.clone());
    Ok(code)
}

/// Compiles the kernels for a generation of cards; needs NVRTC, not a card.
fn compile(number: Number, generation: i32) -> Result<Ptx, CardError> {
    let options = vec![format!("--gpu-architecture=compute_{generation}"), format!("-DREAL={}", number.name())];
    let more = if has_units(number, generation) { TENSOR_SOURCE } else { "" };
    let options = CompileOptions { options, ..Default::default() };
    nvrtc::compile_ptx_with_opts([SOURCE, more].concat(), options).map_err(|error| {
        CardError::Kernels(match error {
            CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
            other => format!("{other:?}"),
        })
    })
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
mod tests {
    use super::*;

    /// Needs NVRTC, not a card: set LD_LIBRARY_PATH to the libraries of the package nvidia-cuda-nvrtc.
    #[test]
    fn kernels_compile_for_every_generation() {
        // SAFETY: the library is opened and closed.
        if !unsafe { nvrtc::sys::is_culib_present() } {
            println!("skipped: there is no NVRTC");
            return;
        }
        for number in [Number::F32, Number::F64] {
            for generation in [75, 80, 90, 100, 120] {
                let code = compile(number, generation).unwrap().to_src();
                for kernel in names(has_units(number, generation)) {
                    assert!(code.contains(&format!(".entry {kernel}(")), "{kernel} {number:?} {generation}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_compile_is_said_with_its_line() {
        // SAFETY: the library is opened and closed.
        if !unsafe { nvrtc::sys::is_culib_present() } {
            println!("skipped: there is no NVRTC");
            return;
        }
        let error = compile(Number::F32, 1).unwrap_err().to_string();
        assert!(error.contains("architecture"), "{error}");
    }
}
