//! Plain loops compiled for the widest vector unit the machine has.

use pulp::{Arch, Simd, WithSimd};

/// Runs `work`, compiled once for each instruction set (AVX-512, AVX2, baseline) and chosen at run time.
///
/// The loop is ordinary scalar code that the compiler vectorises. It keeps the order of operations as written and fuses
/// no multiply with an add, so the bits are the same on every machine. Mark the closure `#[inline(always)]`: only what
/// is inlined here is compiled anew.
///
/// ```
/// use limitpoint::numeric::wide;
/// let mut values = [1.0, 2.0, 3.0];
/// wide(
///     #[inline(always)]
///     || values.iter_mut().for_each(|x| *x *= 2.0),
/// );
/// assert_eq!(values, [2.0, 4.0, 6.0]);
/// ```
#[inline(always)]
pub fn wide<R>(work: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Wide(work))
}

struct Wide<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Wide<F> {
    type Output = R;
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        // `FnMut` and not `FnOnce`: the shim that consumes a closure is never inlined
        (self.0)()
    }
}
