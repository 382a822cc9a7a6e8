//! The card: what must be there, the kernels, and how they are launched.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use cudarc::cublas::{result as blas, sys as blas_sys};
use cudarc::driver::sys::{
    CUdevice_attribute as Attribute, CUevent_flags, CUgraphInstantiate_flags, CUstreamCaptureMode,
};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaStream, DeviceRepr, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::{self, CompileError, CompileOptions, Ptx};
use limitpoint::models::Window;

use super::memory::Memory;
use super::tensor;

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

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Library { .. } => {
                "install the NVIDIA driver and CUDA 13 or its packages nvidia-cuda-nvrtc and nvidia-cublas, put their folders on \
                 LD_LIBRARY_PATH, or leave --device out"
            }
            Self::NoCard(_) => "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or leave --device out",
            Self::Memory { .. } => "end other programs on the card, or leave --device out",
            _ => "go on from the last checkpoint, or leave --device out",
        }
    }
}

/// The numbers of all products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Number {
    F32,
    F64,
}

impl Number {
    /// Bytes of one.
    pub fn bytes(self) -> usize {
        if self == Self::F32 { 4 } else { 8 }
    }

    fn name(self) -> &'static str {
        if self == Self::F32 { "float" } else { "double" }
    }
}

/// Refuses if a library or a card is missing.
pub(crate) fn require() -> Result<Arc<CudaContext>, CardError> {
    // SAFETY: libraries are opened and closed; what they do when they are loaded is the vendor's.
    let present = unsafe {
        [
            ("the driver of the card", "libcuda", cudarc::driver::sys::is_culib_present()),
            ("the compiler of kernels, NVRTC,", "libnvrtc", nvrtc::sys::is_culib_present()),
            ("the library of matrix products, cuBLAS,", "libcublas", blas_sys::is_culib_present()),
        ]
    };
    if let Some((name, library, _)) = present.into_iter().find(|(_, _, present)| !present) {
        return Err(CardError::Library { name, library });
    }
    CudaContext::new(0).map_err(CardError::NoCard)
}

/// What `doctor` tells of a card.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Its generation, such as 9.0.
    pub capability: (i32, i32),
    /// Bytes of memory.
    pub memory: usize,
    /// Bytes of it that are free.
    pub free: usize,
}

/// Looks at the card.
pub fn report() -> Result<Report, CardError> {
    let context = require()?;
    let asking = CardError::driver("asking for the card's properties");
    let (free, memory) = context.mem_get_info().map_err(&asking)?;
    let capability = context.compute_capability().map_err(&asking)?;
    Ok(Report { name: context.name().map_err(&asking)?, capability, memory, free })
}

const SOURCE: &str = include_str!("kernels.cu");
/// Products in 32 bits, on cards that have units for them.
const TENSOR_SOURCE: &str = include_str!("tensor.cu");
/// Every kernel of the first source.
pub(crate) const KERNELS: [&str; 14] = [
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
/// Bytes of scratch that products may use; the same always, because plans depend on it.
pub(crate) const WORKSPACE: usize = 64 << 20;
/// Threads of a block.
const THREADS: u32 = 256;

/// A window as the kernels read it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct WindowSides(pub [i32; 9]);

// SAFETY: nine integers, as `struct Window` of the kernels.
unsafe impl DeviceRepr for WindowSides {}

/// An argument of a kernel.
pub(crate) enum Argument {
    Place(u64),
    Int(i32),
    Wide(i64),
    Real(f64),
    Window(WindowSides),
    Target(tensor::Target),
}

impl Argument {
    /// A window.
    pub fn window(window: &Window) -> Self {
        let Window { before, after, size, stride, zeros } = window;
        let all = [before[0], before[1], after[0], after[1], size[0], size[1], *stride, zeros[0], zeros[1]];
        Self::Window(WindowSides(all.map(|side| i32::try_from(side).unwrap_or(i32::MAX))))
    }
}

impl From<&Memory> for Argument {
    fn from(memory: &Memory) -> Self {
        Self::Place(memory.at)
    }
}

/// While one thread records, no other may start or end anything: what loads code or waits for the whole card, as the first use of a
/// kernel and cuBLAS do, would end the recording, and fail itself.
static RECORDING: RwLock<()> = RwLock::new(());

/// Keeps other threads from recording.
fn unrecorded() -> RwLockReadGuard<'static, ()> {
    RECORDING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Work that is done one piece after the other, with what its products need.
struct Lane {
    stream: Arc<CudaStream>,
    handle: blas_sys::cublasHandle_t,
    workspace: Memory,
}

impl Lane {
    fn new(context: &Arc<CudaContext>) -> Result<Self, CardError> {
        let stream = context.new_stream().map_err(CardError::driver("making a stream"))?;
        let workspace = Memory::zeros(&stream, WORKSPACE)?;
        stream.synchronize().map_err(CardError::driver("making a stream"))?;
        let handle = blas::create_handle().map_err(CardError::Product)?;
        let lane = Self { stream, handle, workspace: workspace };
        // SAFETY: handle, stream and workspace live as long as the lane.
        unsafe {
            blas::set_stream(handle, lane.stream.cu_stream().cast()).map_err(CardError::Product)?;
            blas_sys::cublasSetWorkspace_v2(handle, lane.workspace.at as *mut _, WORKSPACE)
                .result()
                .map_err(CardError::Product)?;
        }
        Ok(lane)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let _started = unrecorded();
        // SAFETY: nobody uses the handle any more; a lost card has nothing left to free.
        let _ = unsafe { blas::destroy_handle(self.handle) };
    }
}

/// A card with streams of its own, its kernels and its products.
pub(crate) struct Card {
    pub context: Arc<CudaContext>,
    /// Where all is done but what is done aside.
    pub stream: Arc<CudaStream>,
    pub number: Number,
    /// Whether it has units for products in these numbers.
    pub tensor: bool,
    kernels: HashMap<&'static str, CudaFunction>,
    lanes: [Lane; 2],
    /// The lane of what is started now.
    lane: Cell<usize>,
    /// Whether this card is being recorded.
    recording: Cell<bool>,
    ready: CudaEvent,
}

// SAFETY: handles and the lane are used by whoever owns the card, one thread at a time.
unsafe impl Send for Card {}

impl Card {
    /// The first card, ready for these numbers.
    pub fn open(number: Number) -> Result<Self, CardError> {
        let _started = unrecorded();
        let context = require()?;
        // SAFETY: every buffer is used on the stream it was made on.
        unsafe { context.disable_event_tracking() };
        let lanes = [Lane::new(&context)?, Lane::new(&context)?];
        let generation = generation(&context)?;
        let tensor = has_units(number, generation);
        let code = kernels(number, generation)?;
        let module = context.load_module(code).map_err(CardError::driver("loading the kernels"))?;
        let load = |name| Ok((name, module.load_function(name).map_err(CardError::driver("loading a kernel"))?));
        let kernels = names(tensor).map(load).collect::<Result<_, CardError>>()?;
        let (stream, ready) = (lanes[0].stream.clone(), event(&context)?);
        Ok(Self {
            context,
            stream,
            number,
            tensor,
            kernels,
            lanes,
            lane: Cell::new(0),
            recording: Cell::new(false),
            ready,
        })
    }

    /// The handle of matrix products.
    pub fn blas(&self) -> blas_sys::cublasHandle_t {
        self.lanes[self.lane.get()].handle
    }

    /// The scratch of products, as long as [`WORKSPACE`].
    pub fn workspace(&self) -> u64 {
        self.lanes[self.lane.get()].workspace.at
    }

    /// Where is worked now: 0 on the stream of all, 1 aside.
    pub fn place(&self) -> usize {
        self.lane.get()
    }

    /// Keeps other threads from recording while something is started, unless it is this thread that records.
    pub fn starting(&self) -> Option<RwLockReadGuard<'static, ()>> {
        (!self.recording.get()).then(unrecorded)
    }

    /// Records what the work starts, without doing it; nothing if that does not come to an end.
    pub fn record(&self, work: impl Fn() -> Result<(), CardError>) -> Result<Option<CudaGraph>, CardError> {
        let _alone = RECORDING.write().unwrap_or_else(PoisonError::into_inner);
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.stream.begin_capture(mode).map_err(CardError::driver("recording a step"))?;
        self.recording.set(true);
        let worked = work();
        self.recording.set(false);
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0));
        Ok(worked.and(graph.map_err(CardError::driver("recording a step"))).ok().flatten())
    }

    /// A mark of how far something has come.
    pub fn event(&self) -> Result<CudaEvent, CardError> {
        event(&self.context)
    }

    /// Does something beside what comes next, after all that came before; `done` marks its end.
    pub fn aside(&self, done: &CudaEvent, work: impl FnOnce() -> Result<(), CardError>) -> Result<(), CardError> {
        let marking = CardError::driver("marking a place in a stream");
        let [main, side] = [&self.lanes[0].stream, &self.lanes[1].stream];
        self.ready.record(main).and_then(|()| side.wait(&self.ready)).map_err(&marking)?;
        self.lane.set(1);
        let worked = work();
        self.lane.set(0);
        done.record(side).map_err(&marking)?;
        worked
    }

    /// What comes next waits for what was done aside.
    pub fn wait(&self, done: &CudaEvent) -> Result<(), CardError> {
        self.stream.wait(done).map_err(CardError::driver("waiting for a place in a stream"))
    }

    /// This many numbers, all zero.
    pub fn numbers(&self, count: usize) -> Result<Memory, CardError> {
        Memory::zeros(&self.stream, count * self.number.bytes())
    }

    /// Runs a kernel with a thread for each of `count` numbers, `rows` times.
    pub fn launch(&self, name: &str, count: usize, rows: usize, arguments: &[Argument]) -> Result<(), CardError> {
        let blocks = count.div_ceil(THREADS as usize).max(1) as u32;
        self.launch_blocks(name, (blocks, rows as u32, 1), arguments)
    }

    /// Runs a kernel with a thread for every four of `count` numbers.
    pub fn launch_fours(&self, name: &str, count: usize, arguments: &[Argument]) -> Result<(), CardError> {
        self.launch(name, count.div_ceil(4), 1, arguments)
    }

    /// The sum of `number` pieces of `count` numbers each, added to what is there if `add`.
    pub fn add_up(&self, to: u64, pieces: u64, count: usize, number: usize, add: bool) -> Result<(), CardError> {
        let [length, pieces_of_it] =
            [count, number].map(|side| i32::try_from(side).map_err(|_| CardError::TooLong(side)));
        // enough threads for each number that none adds many pieces, one after the other
        let threads = number.div_ceil(8).next_power_of_two().min(32);
        let arguments = [
            Argument::Place(to),
            Argument::Place(pieces),
            Argument::Int(length?),
            Argument::Int(pieces_of_it?),
            Argument::Int(i32::from(add)),
            Argument::Int(threads as i32),
        ];
        self.launch_blocks("add_up", ((count * threads).div_ceil(THREADS as usize) as u32, 1, 1), &arguments)
    }

    /// Runs a kernel with these blocks.
    pub fn launch_blocks(
        &self,
        name: &str,
        grid_dim: (u32, u32, u32),
        arguments: &[Argument],
    ) -> Result<(), CardError> {
        self.launch_grid(name, grid_dim, THREADS, arguments)
    }

    /// Runs a kernel with these blocks of so many threads.
    pub fn launch_grid(
        &self,
        name: &str,
        grid_dim: (u32, u32, u32),
        threads: u32,
        arguments: &[Argument],
    ) -> Result<(), CardError> {
        let _started = self.starting();
        let Some(kernel) = self.kernels.get(name) else { return Err(CardError::Kernels(format!("'{name}' is none"))) };
        let mut launch = self.lanes[self.lane.get()].stream.launch_builder(kernel);
        for argument in arguments {
            match argument {
                Argument::Place(value) => launch.arg(value),
                Argument::Int(value) => launch.arg(value),
                Argument::Wide(value) => launch.arg(value),
                Argument::Real(value) => launch.arg(value),
                Argument::Window(value) => launch.arg(value),
                Argument::Target(value) => launch.arg(value),
            };
        }
        // SAFETY: the arguments are those of the kernel, of buffers made for these counts; tests on a card try them all.
        unsafe { launch.launch(LaunchConfig { grid_dim, block_dim: (threads, 1, 1), shared_mem_bytes: 0 }) }
            .map(drop)
            .map_err(CardError::driver("starting a kernel"))
    }
}

fn event(context: &Arc<CudaContext>) -> Result<CudaEvent, CardError> {
    let flags = Some(CUevent_flags::CU_EVENT_DISABLE_TIMING);
    context.new_event(flags).map_err(CardError::driver("making an event"))
}

/// The generation of a card, such as 90.
fn generation(context: &CudaContext) -> Result<i32, CardError> {
    let asking = CardError::driver("asking for the card's generation");
    let [major, minor] = [
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ]
    .map(|attribute| context.attribute(attribute));
    Ok(10 * major.map_err(&asking)? + minor.map_err(&asking)?)
}

/// Whether cards of a generation have units for products in these numbers. In 64 bits cuBLAS uses them.
fn has_units(number: Number, generation: i32) -> bool {
    number == Number::F32 && generation >= tensor::GENERATION
}

/// Every kernel, of the second source where it is compiled too.
fn names(tensor: bool) -> impl Iterator<Item = &'static str> {
    KERNELS.into_iter().chain(tensor::KERNELS.into_iter().flatten().filter(move |_| tensor))
}

/// The kernels for these numbers on this generation of cards, compiled once in a process.
fn kernels(number: Number, generation: i32) -> Result<Ptx, CardError> {
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

    #[test]
    fn every_error_has_a_remedy() {
        let missing = CardError::Library { name: "the driver of the card", library: "libcuda" };
        assert!(missing.to_string().contains("libcuda") && missing.remedy().contains("--device"));
        assert!(CardError::TooLong(1 << 40).remedy().contains("checkpoint"));
    }
}
