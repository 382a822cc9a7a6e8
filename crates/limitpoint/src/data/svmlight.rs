//! Sparse examples in the format of SVMlight and LIBSVM.
//!
//! ```text
//! label index:value index:value … # comment      indices count from 1 and increase; others are 0
//! ```

use super::source::{MAX_FILE_VALUES, Source};
use super::{DataError, Inputs};
use crate::linalg::SparseMatrix;

/// The largest dimension believed without being told.
const MAX_DIMENSION: usize = 1 << 20;

/// Inputs with at most this many entries are made dense, whatever their density.
const SMALL: usize = 10_000_000;

/// Larger ones are made dense where more than one entry in this many is not zero.
const SPARSE_BELOW: usize = 10;

/// Inputs (N×dimension) and targets; the dimension is the largest index unless given. Inputs stay sparse if `sparse`
/// says so or, where it says nothing, if they have more than 10⁷ entries of which less than a tenth is not zero.
pub(crate) fn parse(
    bytes: &[u8],
    file: &str,
    dimension: Option<usize>,
    sparse: Option<bool>,
) -> Result<(Inputs, Vec<f64>), DataError> {
    let source = Source::new(file, "svmlight");
    let limit = dimension.unwrap_or(MAX_DIMENSION);
    let mut targets = Vec::new();
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut largest = 0;
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let place = |problem: String, remedy: &str| source.refuse(format!("line {}", number + 1), problem, remedy);
        let line = line.split(|&byte| byte == b'#').next().unwrap_or_default();
        let text = std::str::from_utf8(line)
            .map_err(|_| place("bytes that are not text".into(), "store the file as UTF-8"))?;
        let mut words = text.split_ascii_whitespace();
        let Some(label) = words.next() else { continue };
        targets.push(
            finite(label)
                .ok_or_else(|| place(format!("label {:?}", shown(label)), "start every line with a number"))?,
        );
        let mut previous = 0;
        for word in words {
            let Some((index, value)) = word.split_once(':') else {
                return Err(place(format!("{:?}", shown(word)), "write index:value pairs separated by spaces"));
            };
            if index == "qid" {
                continue;
            }
            let Ok(index) = index.parse::<usize>() else {
                return Err(place(format!("index {:?}", shown(index)), "indices are whole numbers from 1"));
            };
            if index <= previous {
                let remedy = "indices count from 1 and must increase along a line";
                return Err(place(format!("index {index} after {previous}"), remedy));
            }
            if index > limit {
                let remedy = "set dimension to the true number of inputs if it is larger";
                return Err(place(format!("index {index} beyond {limit} inputs"), remedy));
            }
            let value = finite(value).ok_or_else(|| {
                place(format!("value {:?} of index {index}", shown(value)), "fill in a finite number")
            })?;
            columns.push(u32::try_from(index - 1).unwrap_or(u32::MAX)); // an index beyond 32 bits is refused below
            values.push(value);
            previous = index;
            largest = largest.max(index);
        }
        starts.push(values.len());
    }
    let inputs = dimension.unwrap_or(largest);
    let rows = targets.len();
    if rows == 0 || inputs == 0 {
        let problem = format!("{rows} examples with {inputs} inputs");
        return Err(source.refuse("end", problem, "give at least one example with one input"));
    }
    let size = rows.saturating_mul(inputs);
    let sparse = sparse.unwrap_or(size > SMALL && values.len() < size / SPARSE_BELOW);
    if (if sparse { inputs } else { size }) > MAX_FILE_VALUES {
        let problem = format!("{rows} examples of {inputs} inputs, more than {MAX_FILE_VALUES} dense values");
        return Err(source.refuse("end", problem, "keep fewer examples or inputs"));
    }
    let matrix = SparseMatrix::from_parts(inputs, starts, columns, values)?;
    Ok((if sparse { matrix.into() } else { matrix.to_dense().into() }, targets))
}

fn finite(word: &str) -> Option<f64> {
    word.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The beginning of a word, for an error message.
fn shown(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::hostile::damaged;
    use crate::linalg::Matrix;

    const SAMPLE: &[u8] = b"# a comment\n+1 1:0.5 3:-2 # first\n\n-1 qid:7 2:1e3\r\n1\n";

    #[test]
    fn sparse_lines_become_rows() {
        let expected = Matrix::from_rows(&[&[0.5, 0.0, -2.0], &[0.0, 1e3, 0.0], &[0.0, 0.0, 0.0]]);
        for sparse in [None, Some(false)] {
            let (inputs, targets) = parse(SAMPLE, "s", None, sparse).unwrap();
            assert_eq!(inputs, expected.clone().into());
            assert_eq!(targets, [1.0, -1.0, 1.0]);
        }
        let kept = parse(SAMPLE, "s", None, Some(true)).unwrap().0;
        assert_eq!(kept, SparseMatrix::from_dense(&expected).unwrap().into());
        assert_eq!(parse(SAMPLE, "s", Some(5), None).unwrap().0.cols(), 5);
        assert!(parse(SAMPLE, "s", Some(2), None).is_err());
    }

    #[test]
    fn many_entries_stay_sparse_while_few_of_them_are_not_zero() {
        let text = |rows: usize, entries: usize| {
            let row = (1..=entries).fold("1".to_owned(), |row, index| format!("{row} {index}:1"));
            format!("{row}\n").repeat(rows)
        };
        let sparse = |text: String| parse(text.as_bytes(), "s", Some(1000), None).unwrap().0.is_sparse();
        assert!(!sparse(text(10_000, 1)), "10⁷ entries");
        assert!(sparse(text(10_001, 1)));
        assert!(sparse(text(10_001, 99)));
        assert!(!sparse(text(10_001, 100)), "one in ten");
    }

    #[test]
    fn errors_name_the_line() {
        for (text, place) in [
            ("1 1:2\nx 1:2", "line 2"),
            ("1 0:2", "line 1: index 0 after 0"),
            ("1 2:2 2:3", "index 2 after 2"),
            ("1 2:2 1:3", "index 1 after 2"),
            ("1 1:nan", "value \"nan\""),
            ("inf 1:1", "label"),
            ("1 a:1", "index \"a\""),
            ("1 7", "\"7\""),
            ("1 99999999999:1", "beyond"),
            ("1 99999999999999999999999:1", "index"),
            ("", "0 examples"),
            ("1\n-1", "0 inputs"),
        ] {
            let error = parse(text.as_bytes(), "s.svm", None, None).unwrap_err().to_string();
            assert!(error.contains("s.svm") && error.contains(place), "{text:?} gave {error}");
        }
        assert!(parse(b"1 1:\xff", "s", None, None).is_err());
    }

    #[test]
    fn a_small_file_cannot_ask_for_a_huge_matrix() {
        let mut text = String::from("1 1048576:1\n");
        text.push_str(&"1\n".repeat(300));
        assert!(
            parse(text.as_bytes(), "s", None, Some(false)).unwrap_err().to_string().contains("dense values"),
            "2 GB are not made of a kilobyte"
        );
        let (inputs, _) = parse(text.as_bytes(), "s", None, None).unwrap();
        assert_eq!((inputs.is_sparse(), inputs.stored(), inputs.cols()), (true, 1, 1 << 20));
        for dimension in [(1 << 28) + 1, 1 << 33, usize::MAX] {
            for sparse in [None, Some(false), Some(true)] {
                assert!(parse(b"1 1:1", "s", Some(dimension), sparse).is_err(), "{dimension}");
            }
        }
        assert!(parse(b"1 8589934592:1", "s", Some(1 << 33), None).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in damaged(SAMPLE.to_vec())) {
            if let Ok((inputs, targets)) = parse(&bytes, "h.svm", None, None) {
                prop_assert_eq!(inputs.rows(), targets.len());
                prop_assert_eq!(inputs.first_not_finite(), None);
            }
        }
    }
}
