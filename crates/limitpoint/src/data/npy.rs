//! NumPy arrays: one in an `.npy` file, several in an `.npz` archive.
//!
//! ```text
//! \x93NUMPY, version, header length, {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, values
//! ```
//!
//! The header is parsed here, since it needs three keys of a Python dictionary and a general parser of Python literals
//! can be driven into deep recursion or huge claims. Types f8, f4, i8, i4, i2, i1, u8, u4, u2, u1 and bool; both byte
//! orders and both index orders; versions 1 to 3.

use std::io::Cursor;
use std::path::Path;

use super::DataError;
use super::elements::{Array, Element};
use super::source::{Source, gunzip_if_needed, read_bytes};

/// The longest header believed; NumPy itself stops at 10,000 characters.
const MAX_HEADER: usize = 1 << 16;

/// The most sides NumPy allows.
const MAX_SIDES: usize = 64;

/// What the header says.
struct Header {
    element: Element,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// The array in a NumPy file, which may be gzipped: its shape, and its values row by row.
///
/// ```no_run
/// let (shape, values) = limitpoint::data::read_npy(std::path::Path::new("w0.npy"))?;
/// assert_eq!(shape.iter().product::<usize>(), values.len());
/// # Ok::<(), limitpoint::data::DataError>(())
/// ```
pub fn read_npy(path: &Path) -> Result<(Vec<usize>, Vec<f64>), DataError> {
    let file = path.display().to_string();
    let bytes = gunzip_if_needed(read_bytes(path)?, Source::new(&file, "NPY"))?;
    let array = parse_npy(&bytes, &file)?;
    Ok((array.shape, array.values))
}

/// Reads one array.
pub(crate) fn parse_npy(bytes: &[u8], file: &str) -> Result<Array, DataError> {
    let source = Source::new(file, "NPY");
    let foreign = "write the array with numpy.save";
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(source.refuse("byte 0", "the file does not begin with \\x93NUMPY", foreign));
    }
    let cut = || source.refuse("header", "the file ends inside its header", "the file is cut short; write it again");
    let (length, start) = match bytes.get(6..8).ok_or_else(cut)? {
        [1, _] => {
            let length = bytes.get(8..10).ok_or_else(cut)?;
            (usize::from(u16::from_le_bytes([length[0], length[1]])), 10)
        }
        [2 | 3, _] => {
            let length = bytes.get(8..12).ok_or_else(cut)?;
            (u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize, 12)
        }
        version => {
            return Err(source.refuse("byte 6", format!("format version {}.{}", version[0], version[1]), foreign));
        }
    };
    if length > MAX_HEADER {
        let problem = format!("a header of {length} bytes, more than {MAX_HEADER}");
        return Err(source.refuse(format!("byte {}", start - length.min(2)), problem, foreign));
    }
    let text = bytes.get(start..start + length).ok_or_else(cut)?;
    let header = parse_header(text).map_err(|(at, problem)| {
        source.refuse(
            format!("header, byte {}", start + at),
            problem,
            "save a plain numeric array, such as numpy.save(path, a.astype(float))",
        )
    })?;
    let data = &bytes[start + length..];
    source.check_shape(&header.shape, header.element.width(), data.len())?;
    let values = header.element.decode(data, header.big_endian).map_err(|at| {
        let problem = "a 64-bit integer that no double equals";
        source.refuse(
            format!("value {at} (counted from 0)"),
            problem,
            "store it as floating point, rounded as you see fit",
        )
    })?;
    let values = if header.fortran_order { last_index_fastest(&values, &header.shape) } else { values };
    Ok(Array { shape: header.shape, values })
}

/// Reads the array called `key` from an archive.
pub(crate) fn parse_npz(bytes: &[u8], file: &str, key: &str) -> Result<Array, DataError> {
    let source = Source::new(file, "NPZ");
    let damaged = |position: &str, error: zip::result::ZipError| {
        source.refuse(position, error.to_string(), "write the archive with numpy.savez(path, X=…, y=…)")
    };
    if has_zip64_directory(bytes) {
        let problem = "a ZIP64 directory, whose counts are too large to be believed";
        return Err(source.refuse(
            "archive",
            problem,
            "store fewer arrays; below 4 GiB numpy.savez does not write one",
        ));
    }
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged("archive", error))?;
    let member = format!("{key}.npy");
    let Some(index) = archive.index_for_name(&member) else {
        let mut names: Vec<String> = archive
            .file_names()
            .filter_map(|name| name.ok().map(|name| name.trim_end_matches(".npy").chars().take(40).collect()))
            .take(20)
            .collect();
        names.sort();
        let remedy = format!("set inputs and targets to two of its arrays: {}", names.join(", "));
        return Err(source.refuse("archive", format!("no array is called {key}"), remedy));
    };
    let entry = archive.by_index(index).map_err(|error| damaged(&member, error))?;
    let compressed = usize::try_from(entry.compressed_size()).unwrap_or(usize::MAX).min(bytes.len());
    let array = source.inflate(entry, compressed, &member)?;
    parse_npy(&array, &format!("{file}:{member}"))
}

/// Whether a ZIP64 locator stands right before an end record; such a directory may claim 2⁶⁴ members, and memory would
/// be set aside for them. Without it there are at most 65,535.
fn has_zip64_directory(bytes: &[u8]) -> bool {
    let tail = &bytes[bytes.len().saturating_sub(20 + 22 + (1 << 16) + 4)..];
    tail.windows(24).any(|window| window.starts_with(b"PK\x06\x07") && window.ends_with(b"PK\x05\x06"))
}

/// The three keys of the header dictionary; the error is a place and a problem.
fn parse_header(text: &[u8]) -> Result<Header, (usize, String)> {
    let mut scanner = Scanner { text, at: 0 };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    scanner.expect(b'{')?;
    while !scanner.accept(b'}') {
        let key = scanner.string()?;
        scanner.expect(b':')?;
        let start = scanner.at;
        match key {
            b"descr" => {
                let name = scanner
                    .string()
                    .map_err(|(at, _)| (at, "a structured type, where one number type is needed".to_owned()))?;
                descr =
                    Some(element(name).ok_or_else(|| (start, format!("type {:?}", String::from_utf8_lossy(name))))?);
            }
            b"fortran_order" => fortran_order = Some(scanner.truth()?),
            b"shape" => shape = Some(scanner.tuple()?),
            _ => return Err((start, format!("unknown key {:?}", String::from_utf8_lossy(key)))),
        }
        if !scanner.accept(b',') {
            scanner.expect(b'}')?;
            break;
        }
    }
    if let Some(rest) = text[scanner.at..].iter().position(|byte| !byte.is_ascii_whitespace()) {
        return Err((scanner.at + rest, "something follows the dictionary".to_owned()));
    }
    match (descr, fortran_order, shape) {
        (Some((element, big_endian)), Some(fortran_order), Some(shape)) => {
            Ok(Header { element, big_endian, fortran_order, shape })
        }
        _ => Err((scanner.at, "one of the keys descr, fortran_order and shape is missing".to_owned())),
    }
}

/// The number type behind a type string such as `<f8`, and whether it is big endian.
fn element(name: &[u8]) -> Option<(Element, bool)> {
    let (order, kind) = name.split_first()?;
    let element = match kind {
        b"f8" => Element::F64,
        b"f4" => Element::F32,
        b"i8" => Element::I64,
        b"i4" => Element::I32,
        b"i2" => Element::I16,
        b"i1" => Element::I8,
        b"u8" => Element::U64,
        b"u4" => Element::U32,
        b"u2" => Element::U16,
        b"u1" => Element::U8,
        b"b1" => Element::Bool,
        _ => return None,
    };
    match order {
        b'<' => Some((element, false)),
        b'>' => Some((element, true)),
        b'|' if element.width() == 1 => Some((element, false)),
        _ => None,
    }
}

/// Reorders values whose first index is fastest.
fn last_index_fastest(values: &[f64], shape: &[usize]) -> Vec<f64> {
    let mut index = vec![0; shape.len()];
    let mut strides = vec![1; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut out = Vec::with_capacity(values.len());
    while out.len() < values.len() {
        out.push(values[index.iter().zip(&strides).map(|(i, stride)| i * stride).sum::<usize>()]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

/// Reads the few tokens the header is made of.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), (usize, String)> {
        if self.accept(byte) { Ok(()) } else { Err((self.at, format!("{:?} is missing", char::from(byte)))) }
    }

    /// A quoted string without escapes.
    fn string(&mut self) -> Result<&'a [u8], (usize, String)> {
        let quote = self.peek().filter(|&byte| byte == b'\'' || byte == b'"');
        let body = &self.text[(self.at + 1).min(self.text.len())..];
        let end = quote.and_then(|quote| body.iter().position(|&byte| byte == quote));
        let Some(end) = end else { return Err((self.at, "a quoted string is missing".to_owned())) };
        self.at += end + 2;
        Ok(&body[..end])
    }

    fn truth(&mut self) -> Result<bool, (usize, String)> {
        self.peek();
        for (word, value) in [(&b"True"[..], true), (&b"False"[..], false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err((self.at, "True or False is missing".to_owned()))
    }

    /// A tuple of non-negative integers.
    fn tuple(&mut self) -> Result<Vec<usize>, (usize, String)> {
        self.expect(b'(')?;
        let mut sides = Vec::new();
        while !self.accept(b')') {
            self.peek();
            let start = self.at;
            let mut side = 0_usize;
            while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
                let longer = side.checked_mul(10).and_then(|side| side.checked_add(usize::from(digit - b'0')));
                side = longer.ok_or_else(|| (start, "a side that no memory holds".to_owned()))?;
                self.at += 1;
            }
            if self.at == start || sides.len() == MAX_SIDES {
                return Err((start, "a shape is a tuple of at most 64 non-negative integers".to_owned()));
            }
            sides.push(side);
            self.accept(b'L'); // written by Python 2
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(sides)
    }
}

#[cfg(test)]
#[path = "npy_tests.rs"]
mod tests;
