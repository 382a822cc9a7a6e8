//! Parameters that know which state they are in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::DiagonalMetric;
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

/// Where an engine keeps parameters that it moved itself: a card, say. What is there stays as it is as long as somebody
/// may ask for it.
pub trait Elsewhere: Send + Sync {
    /// Brings the numbers to the host, or says why they cannot be had any more.
    fn bring(&self, into: &mut [f64]) -> Result<(), String>;
}

/// A parameter vector whose every change has a new version, so that equal versions mean equal parameters.
///
/// Whoever derived something from the parameters (scores, a rounded copy, a copy on another device) keeps it under
/// their version and knows by it whether it still holds. An engine that moves them on its device leaves them there, and
/// they come to the host when somebody reads them.
///
/// ```
/// use limitpoint::params::Parameters;
/// let mut params = Parameters::new(&[1.0, 2.0]);
/// let version = params.version();
/// assert_eq!((params.read()[0], params.version()), (1.0, version));
/// params.write()[0] = 3.0;
/// assert_ne!(params.version(), version);
/// ```
pub struct Parameters {
    /// The numbers; nothing while they are only where an engine left them.
    entries: OnceLock<Aligned<f64>>,
    /// The room for the numbers, while they are not here.
    room: Mutex<Aligned<f64>>,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Why numbers did not come back, if they did not; NaN stands for them.
    failure: OnceLock<String>,
    version: Version,
    /// See [`Parameters::metric`].
    metric: Option<Arc<DiagonalMetric>>,
}

impl Parameters {
    /// A copy of these numbers.
    pub fn new(params: &[f64]) -> Self {
        let mut entries = Aligned::zeros(params.len());
        entries.copy_from_slice(params);
        Self {
            entries: OnceLock::from(entries),
            room: Mutex::new(Aligned::zeros(0)),
            elsewhere: None,
            failure: OnceLock::new(),
            version: Version::next(),
            metric: None,
        }
    }

    /// They are to be moved by this metric, wherever they are.
    pub fn carry(&mut self, metric: DiagonalMetric) {
        self.metric = Some(Arc::new(metric));
    }

    /// The metric that [`Update::Metric`](super::Update::Metric) moves them by, if there is one.
    pub fn metric(&self) -> Option<&Arc<DiagonalMetric>> {
        self.metric.as_ref()
    }

    /// The state they are in.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The numbers.
    pub fn read(&self) -> &[f64] {
        self.entries.get_or_init(|| {
            let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
            let mut entries = std::mem::replace(&mut *room, Aligned::zeros(0));
            if let Some(Err(why)) = self.elsewhere.as_ref().map(|elsewhere| elsewhere.bring(&mut entries)) {
                entries.fill(f64::NAN);
                let _ = self.failure.set(why);
            }
            entries
        })
    }

    /// Why the numbers are none: they were on a device that was lost before somebody read them.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// The numbers, to be changed: a new version from here on.
    pub fn write(&mut self) -> &mut [f64] {
        self.read();
        (self.version, self.elsewhere) = (Version::next(), None);
        self.entries.get_mut().map_or(&mut [], |entries| &mut **entries)
    }

    /// Other numbers in their place: a new version. What they were is not fetched from where it is.
    pub fn replace(&mut self, numbers: &[f64]) {
        let room = self.room.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut entries = self.entries.take().unwrap_or_else(|| std::mem::replace(room, Aligned::zeros(0)));
        entries.copy_from_slice(numbers);
        (self.version, self.elsewhere, self.entries) = (Version::next(), None, OnceLock::from(entries));
        self.failure = OnceLock::new();
    }

    /// An engine has moved them where it keeps them: a new version from here on, which is theirs there.
    pub fn moved(&mut self, elsewhere: Arc<dyn Elsewhere>) -> Version {
        if let Some(entries) = self.entries.take() {
            *self.room.get_mut().unwrap_or_else(PoisonError::into_inner) = entries;
        }
        (self.version, self.elsewhere) = (Version::next(), Some(elsewhere));
        self.version
    }
}

impl std::fmt::Debug for Parameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parameters").field("entries", &self.entries.get()).field("version", &self.version).finish()
    }
}

/// A place in parameter space at which something is evaluated: numbers, and their version where they have one.
///
/// ```
/// use limitpoint::params::{At, Parameters};
/// let params = Parameters::new(&[1.0, 2.0]);
/// assert_eq!(At::from(&params).version, Some(params.version()));
/// assert_eq!((At::from(&[1.0, 2.0]).version, At::from(&params).entries()), (None, [1.0, 2.0].as_slice()));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    source: Source<'a>,
    /// The version of the parameters, if they are [`Parameters`].
    pub version: Option<Version>,
}

#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Numbers(&'a [f64]),
    Parameters(&'a Parameters),
}

impl<'a> At<'a> {
    /// Numbers that belong to this version.
    pub fn new(entries: &'a [f64], version: Option<Version>) -> Self {
        Self { source: Source::Numbers(entries), version }
    }

    /// θ, on the host.
    pub fn entries(&self) -> &'a [f64] {
        match self.source {
            Source::Numbers(entries) => entries,
            Source::Parameters(params) => params.read(),
        }
    }
}

impl<'a> From<&'a Parameters> for At<'a> {
    fn from(params: &'a Parameters) -> Self {
        Self { source: Source::Parameters(params), version: Some(params.version()) }
    }
}

impl<'a, P: AsRef<[f64]> + ?Sized> From<&'a P> for At<'a> {
    fn from(entries: &'a P) -> Self {
        Self::new(entries.as_ref(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Card(Vec<f64>);

    impl Elsewhere for Card {
        fn bring(&self, into: &mut [f64]) -> Result<(), String> {
            into.copy_from_slice(&self.0);
            Ok(())
        }
    }

    #[test]
    fn numbers_that_are_elsewhere_come_when_they_are_read() {
        let mut params = Parameters::new(&[1.0, 2.0]);
        let before = params.version();
        let version = params.moved(Arc::new(Card(vec![3.0, 4.0])));
        assert!(version != before && At::from(&params).version == Some(version));
        // a second move before anybody looked
        let version = params.moved(Arc::new(Card(vec![5.0, 6.0])));
        assert_eq!((At::from(&params).entries(), params.version()), ([5.0, 6.0].as_slice(), version));
        params.write()[0] = 7.0;
        assert_eq!(params.read(), [7.0, 6.0]);
        assert_ne!(params.version(), version);
    }

    /// A card that nobody may ask.
    struct Silent;

    impl Elsewhere for Silent {
        fn bring(&self, _: &mut [f64]) -> Result<(), String> {
            panic!("these numbers are about to be replaced");
        }
    }

    /// A card that is gone.
    struct Gone;

    impl Elsewhere for Gone {
        fn bring(&self, _: &mut [f64]) -> Result<(), String> {
            Err("the card is gone".into())
        }
    }

    #[test]
    fn numbers_that_do_not_come_back_are_none_and_it_is_known_why() {
        let mut params = Parameters::new(&[1.0, 2.0]);
        params.moved(Arc::new(Gone));
        assert_eq!(params.failure(), None, "nobody has asked yet");
        assert!(params.read().iter().all(|x| x.is_nan()));
        params.write()[0] = 1.0;
        assert_eq!(params.failure(), Some("the card is gone"));
        params.replace(&[1.0, 2.0]);
        assert_eq!((params.failure(), params.read()), (None, [1.0, 2.0].as_slice()));
    }

    #[test]
    fn numbers_that_are_replaced_are_not_fetched() {
        let mut params = Parameters::new(&[1.0, 2.0]);
        let version = params.moved(Arc::new(Silent));
        params.replace(&[3.0, 4.0]);
        assert!(params.version() != version && params.read() == [3.0, 4.0]);
        let version = params.version();
        params.replace(&[5.0, 6.0]);
        assert!(params.version() != version && params.read() == [5.0, 6.0]);
    }
}
