//! The path of a run's direction, followed in memory.

use serde::{Deserialize, Serialize};

use crate::diagnostics::{DirectionCourse, angle};
use crate::observers::{Continue, Observer, Snapshot, Spacing};

/// An observer that keeps (ln‖θ‖₂, angle turned) at logarithmically spaced steps since the loss was first below 1/e:
/// all that [`DirectionCourse`] needs to tell whether the direction has a limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DirectionPath {
    /// The last step seen, and θ there.
    last: Option<(u64, Vec<f64>)>,
    points: Vec<[f64; 2]>,
}

impl DirectionPath {
    /// What the path shows; nothing where it is too short to be judged.
    pub fn course(&self) -> Option<DirectionCourse> {
        DirectionCourse::of(&self.points)
    }
}

impl Observer for DirectionPath {
    fn wants(&self, step: u64) -> bool {
        Spacing::default().includes(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        let point = &snapshot.point;
        if self.last.as_ref().is_some_and(|(step, _)| *step >= snapshot.step) {
            return Continue::Yes;
        }
        let mut theta = Vec::new();
        point.trainable(&mut theta);
        // the first angle does not count
        let turned = self.last.as_ref().map_or(0.0, |(_, before)| angle(before, &theta));
        if !self.points.is_empty() || point.log_loss <= DirectionCourse::BEGIN {
            self.points.push([point.length().ln(), turned]);
        }
        self.last = Some((snapshot.step, theta));
        Continue::Yes
    }
}
