//! Parameters that know which state they are in.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::linalg::Aligned;

/// Names one state of one parameter vector; no two are alike in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A parameter vector whose every change has a new version, so that equal versions mean equal parameters.
///
/// Whoever derived something from the parameters (scores, a rounded copy, a copy on another device) keeps it under
/// their version and knows by it whether it still holds.
///
/// ```
/// use limitpoint::params::Parameters;
/// let mut params = Parameters::new(&[1.0, 2.0]);
/// let version = params.version();
/// assert_eq!((params.read()[0], params.version()), (1.0, version));
/// params.write()[0] = 3.0;
/// assert_ne!(params.version(), version);
/// ```
#[derive(Debug)]
pub struct Parameters {
    entries: Aligned<f64>,
    version: Version,
}

impl Parameters {
    /// A copy of these numbers.
    pub fn new(params: &[f64]) -> Self {
        let mut entries = Aligned::zeros(params.len());
        entries.copy_from_slice(params);
        Self { entries, version: Version::next() }
    }

    /// The state they are in.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The numbers.
    pub fn read(&self) -> &[f64] {
        &self.entries
    }

    /// The numbers, to be changed: a new version from here on.
    pub fn write(&mut self) -> &mut [f64] {
        self.version = Version::next();
        &mut self.entries
    }
}

/// A place in parameter space at which something is evaluated: numbers, and their version where they have one.
///
/// ```
/// use limitpoint::params::{At, Parameters};
/// let params = Parameters::new(&[1.0, 2.0]);
/// assert_eq!(At::from(&params).version, Some(params.version()));
/// assert_eq!(At::from(&[1.0, 2.0]).version, None);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// θ.
    pub entries: &'a [f64],
    /// The version of the parameters, if they are [`Parameters`].
    pub version: Option<Version>,
}

impl<'a> From<&'a Parameters> for At<'a> {
    fn from(params: &'a Parameters) -> Self {
        Self { entries: params.read(), version: Some(params.version()) }
    }
}

impl<'a, P: AsRef<[f64]> + ?Sized> From<&'a P> for At<'a> {
    fn from(entries: &'a P) -> Self {
        Self { entries: entries.as_ref(), version: None }
    }
}
