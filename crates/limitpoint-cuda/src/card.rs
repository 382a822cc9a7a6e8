//! The card: what must be there, the kernels, and how they are launched.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use cudarc::cublas::{result as blas, sys as blas_sys};
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg};
use cudarc::nvrtc;
use limitpoint::models::Window;

use super::error::CardError;
use super::memory::Memory;
use super::{code, recorder, tensor};

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

    /// Its name in the kernels.
    pub fn name(self) -> &'static str {
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
        let handle = recorder::unrecorded(blas::create_handle).map_err(CardError::Product)?;
        let lane = Self { stream, handle, workspace };
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
        // SAFETY: nobody uses the handle any more; a lost card has nothing left to free.
        let _ = recorder::unrecorded(|| unsafe { blas::destroy_handle(self.handle) });
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
    pub recording: Cell<bool>,
    ready: CudaEvent,
}

// SAFETY: handles and the lane are used by whoever owns the card, one thread at a time.
unsafe impl Send for Card {}

impl Card {
    /// The first card, ready for these numbers.
    pub fn open(number: Number) -> Result<Self, CardError> {
        let context = recorder::unrecorded(require)?;
        // SAFETY: what is used aside is ordered by events (`aside`, `wait`), all else is on one stream; buffers are freed after both.
        unsafe { context.disable_event_tracking() };
        let lanes = [Lane::new(&context)?, Lane::new(&context)?];
        let generation = code::generation(&context)?;
        let tensor = code::has_units(number, generation);
        let code = code::kernels(number, generation)?;
        let kernels = recorder::unrecorded(|| {
            let module = context.load_module(code).map_err(CardError::driver("loading the kernels"))?;
            let load = |name| Ok((name, module.load_function(name).map_err(CardError::driver("loading a kernel"))?));
            code::names(tensor).map(load).collect::<Result<_, CardError>>()
        })?;
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
        // enough threads for each number that none adds many pieces, one after the other
        let threads = number.div_ceil(8).next_power_of_two().min(32);
        let arguments = [
            Argument::Place(to),
            Argument::Place(pieces),
            Argument::Int(CardError::length(count)?),
            Argument::Int(CardError::length(number)?),
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
        let blocks = LaunchConfig { grid_dim, block_dim: (threads, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the arguments are those of the kernel, of buffers made for these counts; tests on a card try them all.
        self.start(|| unsafe { launch.launch(blocks) }.map(drop)).map_err(CardError::driver("starting a kernel"))
    }
}

fn event(context: &Arc<CudaContext>) -> Result<CudaEvent, CardError> {
    let flags = Some(CUevent_flags::CU_EVENT_DISABLE_TIMING);
    context.new_event(flags).map_err(CardError::driver("making an event"))
}
