//! The two floating-point types a product can be computed in, and the vector instructions for each.

use pulp::Simd;

mod sealed {
    /// What keeps other types out: kernels rely on all bytes being valid numbers.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// How numbers of a type lie in vector registers of whatever instruction set [`pulp::Arch`] finds at run time.
pub trait Registers: sealed::Sealed + Copy + Sized {
    /// A vector register of the instruction set `S`.
    type Vector<S: Simd>: Copy;
    /// A yes or no for every number of a register.
    type Mask<S: Simd>: Copy;
    /// Numbers per register.
    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        size_of::<Self::Vector<S>>() / size_of::<Self>()
    }
    /// All lanes equal to `x`.
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    /// The sum of the lanes.
    fn reduce_sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;

    /// Reads one register.
    ///
    /// # Safety
    /// `Self::lanes::<S>()` numbers must be readable at `from`.
    #[inline(always)]
    unsafe fn load<S: Simd>(from: *const Self) -> Self::Vector<S> {
        // SAFETY: a vector register is exactly `lanes` numbers; alignment is not required.
        unsafe { from.cast::<Self::Vector<S>>().read_unaligned() }
    }

    /// Writes one register.
    ///
    /// # Safety
    /// `Self::lanes::<S>()` numbers must be writable at `to`.
    #[inline(always)]
    unsafe fn store<S: Simd>(to: *mut Self, value: Self::Vector<S>) {
        // SAFETY: as in `load`.
        unsafe { to.cast::<Self::Vector<S>>().write_unaligned(value) }
    }
}

/// The handful of operations on registers that the kernels in `linalg::tile` need, each one instruction.
pub trait Lanewise: Registers {
    /// a + b.
    fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// a · b.
    fn mul<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// a · b + c, fused where the machine can.
    fn mul_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    /// max(a, 0), where a NaN stays a NaN.
    fn positive_part<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    /// Where a > 0.
    fn positive<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Mask<S>;
    /// `yes` where the mask says yes, else `no`.
    fn select<S: Simd>(simd: S, mask: Self::Mask<S>, yes: Self::Vector<S>, no: Self::Vector<S>) -> Self::Vector<S>;

    /// `yes` where test > 0, else `no`.
    #[inline(always)]
    fn where_positive<S: Simd>(
        simd: S,
        test: Self::Vector<S>,
        yes: Self::Vector<S>,
        no: Self::Vector<S>,
    ) -> Self::Vector<S> {
        Self::select(simd, Self::positive(simd, test), yes, no)
    }
}

/// A number a network can compute in: `f64`, or `f32` where a network chooses it.
pub trait Real:
    Lanewise + Default + Send + Sync + PartialOrd + std::ops::AddAssign + std::ops::MulAssign + std::fmt::Debug + 'static
{
    /// Rounds a double to this type.
    fn from_f64(x: f64) -> Self;
    /// Widens to a double.
    fn to_f64(self) -> f64;
}

macro_rules! real {
    ($ty: ident, $vector: ident, $mask: ident, $splat: ident, $add: ident, $mul: ident, $mul_add: ident,
     $at_most: ident, $more: ident, $max: ident, $select: ident, $reduce: ident) => {
        impl Real for $ty {
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $ty
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }

        impl Registers for $ty {
            type Vector<S: Simd> = S::$vector;
            type Mask<S: Simd> = S::$mask;
            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$vector {
                simd.$splat(x)
            }
            #[inline(always)]
            fn reduce_sum<S: Simd>(simd: S, a: S::$vector) -> Self {
                simd.$reduce(a)
            }
        }

        impl Lanewise for $ty {
            #[inline(always)]
            fn add<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn mul<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$mul(a, b)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn positive_part<S: Simd>(simd: S, a: S::$vector) -> S::$vector {
                let zero = simd.$splat(0.0);
                if cfg!(target_arch = "x86_64") && Self::lanes::<S>() > 1 {
                    // this instruction answers with its second operand where one of them is NaN
                    simd.$max(zero, a)
                } else {
                    simd.$select(simd.$at_most(a, zero), zero, a)
                }
            }
            #[inline(always)]
            fn positive<S: Simd>(simd: S, a: S::$vector) -> S::$mask {
                simd.$more(a, simd.$splat(0.0))
            }
            #[inline(always)]
            fn select<S: Simd>(simd: S, mask: S::$mask, yes: S::$vector, no: S::$vector) -> S::$vector {
                simd.$select(mask, yes, no)
            }
        }
    };
}

real!(
    f64,
    f64s,
    m64s,
    splat_f64s,
    add_f64s,
    mul_f64s,
    mul_add_e_f64s,
    less_than_or_equal_f64s,
    greater_than_f64s,
    max_f64s,
    select_f64s,
    reduce_sum_f64s
);
real!(
    f32,
    f32s,
    m32s,
    splat_f32s,
    add_f32s,
    mul_f32s,
    mul_add_e_f32s,
    less_than_or_equal_f32s,
    greater_than_f32s,
    max_f32s,
    select_f32s,
    reduce_sum_f32s
);
