//! Sparse examples in the format of SVMlight and LIBSVM, made dense.
//!
//! ```text
//! label index:value index:value … # comment      indices count from 1 and increase; others are 0
//! ```

use super::DataError;
use super::elements::Array;
use super::source::{MAX_FILE_VALUES, Source};

/// The largest dimension believed without being told.
const MAX_DIMENSION: usize = 1 << 20;

/// Inputs (N×dimension) and targets; the dimension is the largest index unless given.
pub(crate) fn parse(bytes: &[u8], file: &str, dimension: Option<usize>) -> Result<(Array, Vec<f64>), DataError> {
    let source = Source::new(file, "svmlight");
    let limit = dimension.unwrap_or(MAX_DIMENSION);
    let mut targets = Vec::new();
    let mut entries: Vec<(usize, usize, f64)> = Vec::new(); // row, column from 0, value
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
            entries.push((targets.len() - 1, index - 1, value));
            previous = index;
            largest = largest.max(index);
        }
    }
    let columns = dimension.unwrap_or(largest);
    let rows = targets.len();
    if rows == 0 || columns == 0 {
        let problem = format!("{rows} examples with {columns} inputs");
        return Err(source.refuse("end", problem, "give at least one example with one input"));
    }
    let Some(size) = rows.checked_mul(columns).filter(|&size| size <= MAX_FILE_VALUES) else {
        let problem = format!("{rows} examples of {columns} inputs, more than {MAX_FILE_VALUES} dense values");
        return Err(source.refuse("end", problem, "keep fewer examples or inputs"));
    };
    let mut values = vec![0.0; size];
    entries.iter().for_each(|&(row, column, value)| values[row * columns + column] = value);
    Ok((Array { shape: vec![rows, columns], values }, targets))
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

    const SAMPLE: &[u8] = b"# a comment\n+1 1:0.5 3:-2 # first\n\n-1 qid:7 2:1e3\r\n1\n";

    #[test]
    fn sparse_lines_become_dense_rows() {
        let (inputs, targets) = parse(SAMPLE, "s", None).unwrap();
        assert_eq!(inputs, Array { shape: vec![3, 3], values: vec![0.5, 0.0, -2.0, 0.0, 1e3, 0.0, 0.0, 0.0, 0.0] });
        assert_eq!(targets, [1.0, -1.0, 1.0]);
        assert_eq!(parse(SAMPLE, "s", Some(5)).unwrap().0.shape, [3, 5]);
        assert!(parse(SAMPLE, "s", Some(2)).is_err());
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
            let error = parse(text.as_bytes(), "s.svm", None).unwrap_err().to_string();
            assert!(error.contains("s.svm") && error.contains(place), "{text:?} gave {error}");
        }
        assert!(parse(b"1 1:\xff", "s", None).is_err());
    }

    #[test]
    fn a_small_file_cannot_ask_for_a_huge_matrix() {
        let mut text = String::from("1 1048576:1\n");
        text.push_str(&"1\n".repeat(300));
        assert!(parse(text.as_bytes(), "s", None).unwrap_err().to_string().contains("dense values"));
        assert!(parse(b"1 1:1", "s", Some(usize::MAX)).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in damaged(SAMPLE.to_vec())) {
            if let Ok((inputs, targets)) = parse(&bytes, "h.svm", None) {
                prop_assert_eq!(inputs.shape[0], targets.len());
                prop_assert!(inputs.values.iter().all(|x| x.is_finite()));
            }
        }
    }
}
