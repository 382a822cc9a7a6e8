//! npy files, as NumPy writes them.

/// The bytes of `numpy.save`: format 1.0, the header padded with spaces so that the data begin at a multiple of 64.
///
/// `kind` is NumPy's name of the type, such as `<f8`; `values` are the entries in the order they are stored.
pub(super) fn npy<const BYTES: usize>(kind: &str, shape: &[usize], fortran: bool, values: &[[u8; BYTES]]) -> Vec<u8> {
    let sides: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = if sides.len() == 1 { format!("({},)", sides[0]) } else { format!("({})", sides.join(", ")) };
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.concat());
    bytes
}

/// Doubles in C order.
pub(super) fn npy_of(shape: &[usize], values: &[f64]) -> Vec<u8> {
    npy("<f8", shape, false, &values.iter().map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `numpy.save` of NumPy 2 wrote for `[[1.5], [2.5]]` and for
    /// `numpy.asfortranarray([[1, 2], [3, 4]], dtype="i2")`.
    #[test]
    fn the_bytes_are_those_of_numpy() {
        let head = |words: &str| {
            let mut bytes = b"\x93NUMPY\x01\x00v\x00".to_vec();
            bytes.extend(format!("{words:<117}\n").bytes());
            bytes
        };
        let mut column = head("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }");
        column.extend(b"\x00\x00\x00\x00\x00\x00\xf8?\x00\x00\x00\x00\x00\x00\x04@");
        assert_eq!(npy_of(&[2, 1], &[1.5, 2.5]), column);
        let mut square = head("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }");
        square.extend(b"\x01\x00\x03\x00\x02\x00\x04\x00");
        assert_eq!(npy("<i2", &[2, 2], true, &[1i16, 3, 2, 4].map(i16::to_le_bytes)), square);
    }
}
