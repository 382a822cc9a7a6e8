//! Hints to the machine about memory that is needed soon.

/// Asks for `count` numbers that are needed soon; a hint that the machine may ignore.
#[inline(always)]
pub fn fetch<T>(from: *const T, count: usize) {
    #[cfg(target_arch = "x86_64")]
    for byte in (0..count * size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the hint may be given for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast::<i8>().wrapping_add(byte)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, count);
}
