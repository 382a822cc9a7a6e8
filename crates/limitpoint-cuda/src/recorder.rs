//! Work that is asked for again and again is recorded and then started as a whole: its kernels follow each other without gaps.

use std::sync::{PoisonError, RwLock};

use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::card::Card;
use super::error::CardError;

/// Kinds of work that are remembered: a batch, the last one of an epoch, all.
const REMEMBERED: usize = 3;

/// Recordings of one way, by what tells its kinds apart.
pub(crate) struct Recorder<K> {
    known: Vec<Recorded<K>>,
}

/// A kind of work, how often it was done, and its recording.
struct Recorded<K> {
    kind: K,
    times: usize,
    graph: Option<CudaGraph>,
}

impl<K> Default for Recorder<K> {
    fn default() -> Self {
        Self { known: Vec::new() }
    }
}

impl<K: Copy + PartialEq> Recorder<K> {
    /// Does the work: twice as it is, the third time it is recorded. It must start the same kernels on the same memory whenever the
    /// kind is the same.
    pub fn run(&mut self, card: &Card, kind: K, work: impl Fn() -> Result<(), CardError>) -> Result<(), CardError> {
        let known = self.known.iter().position(|recorded| recorded.kind == kind);
        let place = known.unwrap_or_else(|| {
            self.known.truncate(REMEMBERED - 1);
            self.known.push(Recorded { kind, times: 0, graph: None });
            self.known.len() - 1
        });
        let recorded = &mut self.known[place];
        recorded.times += 1;
        if recorded.times == 3 {
            recorded.graph = card.record(&work)?;
            // what could not be recorded is done as it is, and recorded later
            recorded.times *= usize::from(recorded.graph.is_some());
        }
        match &recorded.graph {
            Some(graph) => graph.launch().map_err(CardError::driver("starting a recorded step")),
            None => work(),
        }
    }
}

/// While one thread records, no other starts a kernel or a product: what loads code or waits for the whole card, as the first use of a
/// kernel and cuBLAS do, would end the recording, and fail itself.
static RECORDING: RwLock<()> = RwLock::new(());

/// Does something while no thread records. It must not be asked for again in there.
pub(crate) fn unrecorded<T>(work: impl FnOnce() -> T) -> T {
    let _nobody = RECORDING.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

impl Card {
    /// Starts something: to be recorded if this card is, or while no thread records.
    pub fn start<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.recording.get() { work() } else { unrecorded(work) }
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
}
