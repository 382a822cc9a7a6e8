//! The parameters in the type a network computes in.

use std::any::TypeId;

use super::{BLOCK, DenseNetwork, share};
use crate::linalg::{Real, SharedSlice, Team};
use crate::params::{At, Version};

/// Parameters rounded to `T`, and which parameters they were. Empty when `T` is `f64`, where nothing is rounded.
pub(super) struct Rounded<T> {
    pub values: Vec<T>,
    /// The version of the parameters whose copies are kept, where one pass moved both.
    pub version: Option<Version>,
}

impl<T: Real> Rounded<T> {
    /// Room for this many parameters.
    pub fn new(length: usize) -> Self {
        let length = if is_double::<T>() { 0 } else { length };
        Self { values: vec![T::default(); length], version: None }
    }

    /// Rounds `params[from..]`, shared out over the team.
    pub fn round(&mut self, team: &Team, params: &[f64], from: usize) {
        if is_double::<T>() {
            return;
        }
        let (params, rounded) = (&params[from..], SharedSlice::new(&mut self.values[from..]));
        share(team, (params.len(), BLOCK), params.len(), |range| {
            // SAFETY: every worker writes its own blocks.
            round_into(unsafe { rounded.part(range.clone()) }, &params[range]);
        });
    }

    /// Where copies begin, if there are any.
    pub fn lowest(&mut self) -> Option<*mut T> {
        (!is_double::<T>()).then_some(self.values.as_mut_ptr())
    }
}

/// Rounds as many numbers as both have.
pub(super) fn round_into<T: Real>(to: &mut [T], from: &[f64]) {
    crate::numeric::wide(
        #[inline(always)]
        || to.iter_mut().zip(from).for_each(|(to, from)| *to = T::from_f64(*from)),
    );
}

/// Whether the network computes in doubles, so that parameters need no rounding.
pub(super) fn is_double<T: Real>() -> bool {
    TypeId::of::<T>() == TypeId::of::<f64>()
}

impl<T: Real> DenseNetwork<T> {
    /// The parameters in `T`: themselves for doubles, otherwise copies that are rounded now unless they are up to date.
    /// A sparse lowest layer has copies of its own weights instead.
    pub(super) fn weights(&mut self, at: At<'_>) -> *const T {
        let params = at.entries();
        assert_eq!(params.len(), self.bound.layout.len(), "parameters of another layout");
        if at.version.is_some() && at.version == self.rounded.version {
            return self.weights_at(params.as_ptr());
        }
        self.rounded.version = None;
        if let Some(sparse) = &mut self.sparse {
            sparse.pack_weights(&self.team, params, &self.layers[0]);
            self.rounded.round(&self.team, params, self.layers[0].end());
        } else {
            self.rounded.round(&self.team, params, 0);
        }
        self.weights_at(params.as_ptr())
    }

    /// The parameters in `T` as the last forward pass left them; doubles are those at this address.
    pub(super) fn weights_at(&self, params: *const f64) -> *const T {
        if is_double::<T>() { params.cast() } else { self.rounded.values.as_ptr() }
    }
}
