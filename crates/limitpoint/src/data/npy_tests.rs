//! Files as NumPy and zip write them, and hostile bytes.

use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::data::hostile::damaged;
use crate::data::npy_writer::{npy, npy_of};

fn raw(header: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

fn archive(members: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(*name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn every_type_of_numpy_is_read() {
    let shape = [2, 2];
    let expected = Array { shape: vec![2, 2], values: vec![1.0, 0.0, 3.0, 100.0] };
    for bytes in [
        npy_of(&shape, &[1.0, 0.0, 3.0, 100.0]),
        npy("<f4", &shape, false, &[1.0_f32, 0.0, 3.0, 100.0].map(f32::to_le_bytes)),
        npy("<i8", &shape, false, &[1_i64, 0, 3, 100].map(i64::to_le_bytes)),
        npy("<i4", &shape, false, &[1_i32, 0, 3, 100].map(i32::to_le_bytes)),
        npy("<i2", &shape, false, &[1_i16, 0, 3, 100].map(i16::to_le_bytes)),
        npy("|i1", &shape, false, &[1_i8, 0, 3, 100].map(i8::to_le_bytes)),
        npy("<u8", &shape, false, &[1_u64, 0, 3, 100].map(u64::to_le_bytes)),
        npy("<u4", &shape, false, &[1_u32, 0, 3, 100].map(u32::to_le_bytes)),
        npy("<u2", &shape, false, &[1_u16, 0, 3, 100].map(u16::to_le_bytes)),
        npy("|u1", &shape, false, &[1_u8, 0, 3, 100].map(u8::to_le_bytes)),
    ] {
        assert_eq!(parse_npy(&bytes, "x.npy").unwrap(), expected);
    }
    assert_eq!(parse_npy(&npy("|b1", &[2], false, &[[1], [0]]), "x.npy").unwrap().values, [1.0, 0.0]);
}

#[test]
fn fortran_order_and_big_endian_are_undone() {
    // the array [[[0, 1], [2, 3], [4, 5]]] ... with entry 100 i + 10 j + k at (i, j, k), first index fastest
    let (rows, columns, depth) = (2, 3, 4);
    let entry = |i: usize, j: usize, k: usize| (100 * i + 10 * j + k) as f64;
    let mut stored = Vec::new();
    let mut expected = vec![0.0; rows * columns * depth];
    for k in 0..depth {
        for j in 0..columns {
            for i in 0..rows {
                stored.push(entry(i, j, k));
                expected[(i * columns + j) * depth + k] = entry(i, j, k);
            }
        }
    }
    let stored: Vec<[u8; 8]> = stored.iter().map(|value: &f64| value.to_le_bytes()).collect();
    let bytes = npy("<f8", &[2, 3, 4], true, &stored);
    assert_eq!(parse_npy(&bytes, "x").unwrap(), Array { shape: vec![2, 3, 4], values: expected });
    let big = raw("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }\n", &[0, 0, 1, 0, 255, 255, 255, 255]);
    assert_eq!(parse_npy(&big, "x").unwrap().values, [256.0, -1.0]);
}

#[test]
fn archives_stored_and_deflated_are_read_by_name() {
    let (inputs, targets) = (npy_of(&[2, 1], &[1.5, 2.5]), npy("<i8", &[2], false, &[1_i64, -1].map(i64::to_le_bytes)));
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        let bytes = archive(&[("X.npy", &inputs), ("y.npy", &targets)], method);
        assert_eq!(parse_npz(&bytes, "a.npz", "X").unwrap().values, [1.5, 2.5]);
        assert_eq!(parse_npz(&bytes, "a.npz", "y").unwrap().values, [1.0, -1.0]);
        let error = parse_npz(&bytes, "a.npz", "labels").unwrap_err().to_string();
        assert!(error.contains("X, y"), "{error}");
    }
}

#[test]
fn an_archive_that_inflates_without_end_is_cut_off_by_its_claim() {
    let mut bomb = raw("{'descr': '|u1', 'fortran_order': False, 'shape': (9999999999,), }", &[]);
    bomb.extend(vec![0; 4 << 20]);
    let bytes = archive(&[("X.npy", &bomb)], zip::CompressionMethod::Deflated);
    assert!(parse_npz(&bytes, "a.npz", "X").unwrap_err().to_string().contains("bytes of data"));
}

#[test]
fn a_directory_that_claims_a_trillion_members_is_refused() {
    let plain = archive(
        &[("X.npy", &raw("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", &[1]))],
        zip::CompressionMethod::Stored,
    );
    let end = plain.len() - 22;
    let claim = 1_u64 << 40;
    let mut bytes = plain[..end].to_vec();
    bytes.extend(b"PK\x06\x06");
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for field in [claim, claim, claim * 64, claim * 2] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(b"PK\x06\x07\0\0\0\0");
    bytes.extend((end as u64).to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(b"PK\x05\x06");
    bytes.extend([0xff; 16]);
    bytes.extend([0, 0]);
    assert!(parse_npz(&plain, "a.npz", "X").is_ok());
    assert!(parse_npz(&bytes, "a.npz", "X").unwrap_err().to_string().contains("ZIP64"));
}

#[test]
fn hostile_headers_are_refused_with_their_place() {
    let deep = format!("{{'descr': {}, ", "[".repeat(5000));
    for (header, values) in [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,), }", &[][..]),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }", &[]),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 18446744073709551615, 2), }", &[1]),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", &[1, 2, 3]),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", &[]),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", &[0; 8]),
        ("{'descr': '|f8', 'fortran_order': False, 'shape': (1,), }", &[0; 8]),
        ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", &[0; 8]),
        ("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,), }", &[0; 8]),
        ("{'descr': '<f8', 'shape': (1,), }", &[0; 8]),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}", &[0; 8]),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } x", &[0; 8]),
        ("{'descr", &[]),
        ("", &[]),
        (&deep, &[]),
    ] {
        assert!(matches!(parse_npy(&raw(header, values), "x.npy"), Err(DataError::Format { .. })), "{header:.80}");
    }
    assert!(parse_npy(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "x.npy").is_err());
    assert!(parse_npy(b"\x93NUMPY\x07\x00\x01\x00{", "x.npy").is_err());
    assert!(parse_npy(b"\x93NUMPY", "x.npy").is_err());
    let large = raw("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", &i64::MAX.to_le_bytes());
    assert!(parse_npy(&large, "x.npy").unwrap_err().to_string().contains("value 0"));
}

#[test]
fn scalars_and_empty_arrays_have_a_shape() {
    let scalar = raw("{'descr': '<f8', 'fortran_order': True, 'shape': (), }", &2.0_f64.to_le_bytes());
    assert_eq!(parse_npy(&scalar, "x").unwrap(), Array { shape: vec![], values: vec![2.0] });
    let empty = raw("{'descr': '<f8', 'fortran_order': True, 'shape': (0, 3), }", &[]);
    assert_eq!(parse_npy(&empty, "x").unwrap(), Array { shape: vec![0, 3], values: vec![] });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_bytes_make_the_parsers_panic(
        bytes in damaged(npy("<f8", &[2, 2], true, &[1.0_f64, 2.0, 3.0, 4.0].map(f64::to_le_bytes))),
        packed in damaged(archive(
            &[
                ("X.npy", &npy_of(&[2, 1], &[1.0, 2.0])),
                ("y.npy", &npy("<i8", &[2], false, &[1_i64, -1].map(i64::to_le_bytes))),
            ],
            zip::CompressionMethod::Deflated,
        )),
    ) {
        for array in [parse_npy(&bytes, "h.npy"), parse_npz(&packed, "h.npz", "X"), parse_npz(&bytes, "h.npz", "X")].into_iter().flatten() {
            prop_assert_eq!(array.values.len(), array.shape.iter().product::<usize>());
        }
    }
}
