//! Named arrays in a safetensors file.

use safetensors::{Dtype, SafeTensors};

use super::DataError;
use super::elements::{Array, Element};
use super::source::Source;

/// Reads the tensor called `key`.
pub(crate) fn parse(bytes: &[u8], file: &str, key: &str) -> Result<Array, DataError> {
    let source = Source::new(file, "safetensors");
    let damaged = "the file is damaged or of another format; write it again";
    if let Some(at) = absurd_number(bytes) {
        // offsets near 2^64 would overflow the sums of the header check below
        return Err(source.refuse(format!("byte {at}"), "a number of more than 18 digits", damaged));
    }
    let tensors =
        SafeTensors::deserialize(bytes).map_err(|error| source.refuse("header", error.to_string(), damaged))?;
    let tensor = tensors.tensor(key).map_err(|_| {
        let mut names: Vec<String> = tensors.names().iter().map(|name| name.chars().take(40).collect()).collect();
        names.sort();
        names.truncate(20);
        let remedy = format!("set inputs and targets to two of its tensors: {}", names.join(", "));
        source.refuse("header", format!("no tensor is called {key}"), remedy)
    })?;
    let element = match tensor.dtype() {
        Dtype::F64 => Element::F64,
        Dtype::F32 => Element::F32,
        Dtype::I64 => Element::I64,
        Dtype::I32 => Element::I32,
        Dtype::I16 => Element::I16,
        Dtype::I8 => Element::I8,
        Dtype::U64 => Element::U64,
        Dtype::U32 => Element::U32,
        Dtype::U16 => Element::U16,
        Dtype::U8 => Element::U8,
        Dtype::BOOL => Element::Bool,
        other => {
            let problem = format!("tensor {key} has type {other:?}");
            return Err(source.refuse("header", problem, "store it as F64, F32, an integer type or BOOL"));
        }
    };
    source.check_shape(tensor.shape(), element.width(), tensor.data().len())?;
    let values = element.decode(tensor.data(), false).map_err(|at| {
        let position = format!("tensor {key}, value {at} (counted from 0)");
        source.refuse(position, "a 64-bit integer that no double equals", "store it as floating point")
    })?;
    Ok(Array { shape: tensor.shape().to_vec(), values })
}

/// The place of the first number of more than 18 digits in the header, outside its strings.
fn absurd_number(bytes: &[u8]) -> Option<usize> {
    let length = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let header = bytes.get(8..8_usize.checked_add(usize::try_from(length).ok()?)?)?;
    let (mut quoted, mut escaped, mut digits) = (false, false, 0);
    for (at, &byte) in header.iter().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        quoted = byte == b'"';
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 18 {
            return Some(8 + at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use safetensors::tensor::TensorView;

    use super::*;
    use crate::data::hostile::damaged;

    fn sample() -> Vec<u8> {
        let inputs: Vec<u8> = [1.5_f64, -2.0, 0.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let targets: Vec<u8> = [1_i64, -1].iter().flat_map(|x| x.to_le_bytes()).collect();
        let half = TensorView::new(Dtype::F16, vec![1], &[0, 0]).unwrap();
        let tensors = [
            ("X", TensorView::new(Dtype::F64, vec![2, 2], &inputs).unwrap()),
            ("y", TensorView::new(Dtype::I64, vec![2], &targets).unwrap()),
            ("half", half),
        ];
        safetensors::serialize(tensors, None).unwrap()
    }

    fn raw(header: &str, values: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), values].concat()
    }

    #[test]
    fn tensors_of_an_independent_writer_are_read_by_name() {
        let bytes = sample();
        assert_eq!(parse(&bytes, "s", "X").unwrap(), Array { shape: vec![2, 2], values: vec![1.5, -2.0, 0.0, 4.0] });
        assert_eq!(parse(&bytes, "s", "y").unwrap().values, [1.0, -1.0]);
        assert!(parse(&bytes, "s", "z").unwrap_err().to_string().contains("X, half, y"));
        assert!(parse(&bytes, "s", "half").unwrap_err().to_string().contains("F16"));
        let byte = raw(r#"{"X":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#, &[7, 255]);
        assert_eq!(parse(&byte, "s", "X").unwrap().values, [7.0, 255.0]);
        let single = raw(r#"{"X":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, &0.5_f32.to_le_bytes());
        assert_eq!(parse(&single, "s", "X").unwrap().values, [0.5]);
    }

    #[test]
    fn hostile_headers_are_refused() {
        for (header, values) in [
            (r#"{"X":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}"#, &[][..]),
            (r#"{"X":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}}"#, &[0; 8]),
            (r#"{"X":{"dtype":"U8","shape":[999999999999999999],"data_offsets":[0,999999999999999999]}}"#, &[1]),
            (r#"{"X":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#, &[1]),
            (r#"{"X":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}}"#, &[1]),
            ("{", &[]),
            (&"[".repeat(100_000), &[]),
            ("", &[]),
        ] {
            assert!(matches!(parse(&raw(header, values), "s", "X"), Err(DataError::Format { .. })), "{header:.80}");
        }
        assert!(parse(&[255; 8], "s", "X").is_err());
        assert!(parse(&[], "s", "X").is_err());
        // long digits inside a name are harmless
        let named = raw(r#"{"\"1234567890123456789012":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, &[3]);
        assert_eq!(parse(&named, "s", "\"1234567890123456789012").unwrap().values, [3.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in damaged(sample())) {
            for key in ["X", "y"] {
                if let Ok(array) = parse(&bytes, "h.safetensors", key) {
                    prop_assert_eq!(array.values.len(), array.shape.iter().product::<usize>());
                }
            }
        }
    }
}
