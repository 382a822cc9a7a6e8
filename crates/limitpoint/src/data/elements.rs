//! Numbers as files store them, widened to `f64`.

/// The type of one stored number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    /// Truth value, one byte, any non-zero byte is 1.
    Bool,
    /// Unsigned 8 bit.
    U8,
    /// Signed 8 bit.
    I8,
    /// Unsigned 16 bit.
    U16,
    /// Signed 16 bit.
    I16,
    /// Unsigned 32 bit.
    U32,
    /// Signed 32 bit.
    I32,
    /// Unsigned 64 bit.
    U64,
    /// Signed 64 bit.
    I64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Element {
    /// Bytes per number.
    pub fn width(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// All numbers in `bytes`, whose length is a multiple of the width.
    ///
    /// The error is the index of the first 64-bit integer that no `f64` equals; such a number is never rounded
    /// silently.
    pub fn decode(self, bytes: &[u8], big_endian: bool) -> Result<Vec<f64>, usize> {
        macro_rules! numbers {
            ($type:ty, $convert:expr) => {{
                let numbers = bytes.chunks_exact(size_of::<$type>()).map(|chunk| {
                    let mut array = [0; size_of::<$type>()];
                    array.copy_from_slice(chunk);
                    if big_endian { <$type>::from_be_bytes(array) } else { <$type>::from_le_bytes(array) }
                });
                numbers.enumerate().map($convert).collect()
            }};
        }
        match self {
            Self::Bool => Ok(bytes.iter().map(|&byte| f64::from(u8::from(byte != 0))).collect()),
            Self::U8 => Ok(bytes.iter().map(|&byte| f64::from(byte)).collect()),
            Self::I8 => Ok(bytes.iter().map(|&byte| f64::from(byte as i8)).collect()),
            Self::U16 => numbers!(u16, |(_, x)| Ok(f64::from(x))),
            Self::I16 => numbers!(i16, |(_, x)| Ok(f64::from(x))),
            Self::U32 => numbers!(u32, |(_, x)| Ok(f64::from(x))),
            Self::I32 => numbers!(i32, |(_, x)| Ok(f64::from(x))),
            Self::F32 => numbers!(f32, |(_, x)| Ok(f64::from(x))),
            Self::F64 => numbers!(f64, |(_, x)| Ok(x)),
            Self::U64 => {
                numbers!(u64, |(i, x)| if (x as f64) as u128 == u128::from(x) { Ok(x as f64) } else { Err(i) })
            }
            Self::I64 => {
                numbers!(i64, |(i, x)| if (x as f64) as i128 == i128::from(x) { Ok(x as f64) } else { Err(i) })
            }
        }
    }
}

/// An array of any shape, its values row by row (last index fastest).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    /// Sides, first index first.
    pub shape: Vec<usize>,
    /// Values.
    pub values: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_are_read() {
        assert_eq!(Element::I16.decode(&[0xff, 0xfe], true).unwrap(), [-2.0]);
        assert_eq!(Element::I16.decode(&[0xfe, 0xff], false).unwrap(), [-2.0]);
        assert_eq!(Element::F32.decode(&1.5_f32.to_be_bytes(), true).unwrap(), [1.5]);
        assert_eq!(Element::F64.decode(&(-0.1_f64).to_le_bytes(), false).unwrap(), [-0.1]);
        assert_eq!(Element::U32.decode(&[0, 0, 1, 0], true).unwrap(), [256.0]);
        assert_eq!(Element::Bool.decode(&[0, 1, 7], true).unwrap(), [0.0, 1.0, 1.0]);
        assert_eq!(Element::I8.decode(&[0xff], true).unwrap(), [-1.0]);
    }

    #[test]
    fn integers_are_never_rounded() {
        let bytes: Vec<u8> = [1_i64 << 53, (1 << 53) + 1].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(Element::I64.decode(&bytes, false), Err(1));
        assert_eq!(Element::U64.decode(&u64::MAX.to_le_bytes(), false), Err(0));
        assert_eq!(Element::I64.decode(&i64::MIN.to_le_bytes(), false).unwrap(), [-(2.0_f64.powi(63))]);
        assert_eq!(Element::I64.decode(&i64::MAX.to_le_bytes(), false), Err(0));
    }
}
