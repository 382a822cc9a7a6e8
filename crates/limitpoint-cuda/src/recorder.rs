//! Work that is asked for again and again is recorded and then started as a whole: its kernels follow each other without gaps.

use cudarc::driver::CudaGraph;

use super::card::{Card, CardError};

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
