//! Tables of numbers separated by commas (or another character), one example per line.
//!
//! Whether the first line holds titles is the reader's own decision only where it is clear: all of its fields are
//! numbers, or none is. A line of both kinds could be either, and taking an example for titles would lose it, so it is
//! refused until `header` says which. What was decided is told in [`Table::note`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DataError;
use super::elements::Array;
use super::source::Source;

/// Which column holds the targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TargetColumn {
    /// Counted from 0.
    Index(usize),
    /// By its title in the first line.
    Name(String),
}

/// How a table is laid out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TableLayout<'a> {
    /// Whether the first line holds titles; by default it does if none of its fields is a number.
    pub header: Option<bool>,
    /// The character between fields.
    pub delimiter: u8,
    /// The column of the targets; the last if absent.
    pub target: Option<&'a TargetColumn>,
}

/// What a table holds.
#[derive(Debug)]
pub(crate) struct Table {
    /// N×(columns − 1).
    pub inputs: Array,
    /// The target column.
    pub targets: Vec<f64>,
    /// How the first line was read, where nobody said.
    pub note: Option<String>,
}

/// Inputs and targets of a table.
pub(crate) fn parse(bytes: &[u8], file: &str, layout: TableLayout) -> Result<Table, DataError> {
    let source = Source::new(file, "CSV");
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(layout.delimiter)
        .trim(csv::Trim::All)
        .from_reader(bytes);
    let mut titles: Option<Vec<String>> = None;
    let (mut values, mut columns) = (Vec::new(), 0);
    let mut record = csv::ByteRecord::new();
    let mut first = true;
    loop {
        let more = reader.read_byte_record(&mut record).map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            source.refuse(format!("line {line}"), error.to_string(), "check the quoting of the fields")
        })?;
        if !more {
            break;
        }
        let line = record.position().map_or(0, csv::Position::line);
        if std::mem::take(&mut first) {
            columns = record.len();
            if columns < 2 {
                let problem = format!("{columns} column, where inputs and a target are needed");
                return Err(source.refuse(format!("line {line}"), problem, delimiter_remedy(&record)));
            }
            if layout.header.map_or_else(|| holds_titles(source, &record), Ok)? {
                titles = Some(record.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect());
                continue;
            }
        }
        if record.len() != columns {
            let problem = format!("{} fields, where the first line has {columns}", record.len());
            return Err(source.refuse(format!("line {line}"), problem, "give every line the same number of fields"));
        }
        for (column, field) in record.iter().enumerate() {
            let value = number(field).filter(|value| value.is_finite()).ok_or_else(|| {
                let shown: String = String::from_utf8_lossy(field).chars().take(40).collect();
                let title = titles.as_ref().map_or(String::new(), |titles| format!(" ({})", titles[column]));
                let position = format!("line {line}, column {}{title}", column + 1);
                source.refuse(
                    position,
                    format!("{shown:?} is not a finite number"),
                    "fill in a number, number the classes, or remove the line",
                )
            })?;
            values.push(value);
        }
        source.bound(values.len())?;
    }
    if values.is_empty() {
        return Err(source.refuse("end", "there are no examples", "give at least one line of numbers"));
    }
    let target = target_column(source, layout.target, titles.as_deref(), columns)?;
    let note = layout.header.is_none().then(|| match &titles {
        Some(titles) => {
            let shown = titles.iter().take(4).map(|title| format!("{title:?}")).collect::<Vec<_>>().join(", ");
            let more = if titles.len() > 4 { ", …" } else { "" };
            format!("{file}: the first line was read as titles ({shown}{more}); header = false makes it an example")
        }
        None => format!("{file}: the first line was read as an example; header = true makes it titles"),
    });
    let rows = values.len() / columns;
    let targets = values.chunks_exact(columns).map(|row| row[target]).collect();
    let inputs =
        values.into_iter().enumerate().filter(|(i, _)| i % columns != target).map(|(_, value)| value).collect();
    Ok(Table { inputs: Array { shape: vec![rows, columns - 1], values: inputs }, targets, note })
}

/// Whether a first line is one of titles; refused where some of its fields are numbers and some are not.
fn holds_titles(source: Source, record: &csv::ByteRecord) -> Result<bool, DataError> {
    let place = |wanted: bool| record.iter().position(|field| number(field).is_some() == wanted);
    let (Some(numeric), Some(word)) = (place(true), place(false)) else { return Ok(place(false).is_some()) };
    let shown = |column: usize| match &record[column] {
        b"" => "nothing".to_owned(),
        field => format!("{:?}", String::from_utf8_lossy(field).chars().take(40).collect::<String>()),
    };
    let problem = format!(
        "column {} holds {}, a number, and column {} holds {}, which is none: this may be an example or a line of titles",
        numeric + 1,
        shown(numeric),
        word + 1,
        shown(word)
    );
    let remedy = if word + 1 == record.len() && record[word].is_empty() {
        "remove the delimiter at the end of the line, fill in the number, or say header = true".to_owned()
    } else if record.iter().any(|field| field.contains(&b';')) {
        delimiter_remedy(record)
    } else {
        "say header = true if these are titles, or header = false after filling in a number".to_owned()
    };
    Err(source.refuse("line 1", problem, remedy))
}

/// What may be the matter with a line that does not fall into fields.
fn delimiter_remedy(record: &csv::ByteRecord) -> String {
    let contains = |byte: u8| record.iter().any(|field| field.contains(&byte));
    match [b';', b'\t', b'|', b' '].into_iter().find(|byte| contains(*byte)) {
        Some(byte) => format!("say delimiter = {:?}", char::from(byte).to_string()),
        None => "check the delimiter".to_owned(),
    }
}

/// A number as Rust writes it; None for anything else.
fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// The index of the target column; by default the last one.
pub(crate) fn target_column(
    source: Source,
    target: Option<&TargetColumn>,
    titles: Option<&[String]>,
    columns: usize,
) -> Result<usize, DataError> {
    match target {
        None => Ok(columns - 1),
        Some(&TargetColumn::Index(index)) if index < columns => Ok(index),
        Some(TargetColumn::Index(index)) => {
            let remedy = format!("columns are counted from 0 to {}", columns - 1);
            Err(source.refuse("columns", format!("there is no column {index} for the targets"), remedy))
        }
        Some(TargetColumn::Name(name)) => {
            let titles = titles.unwrap_or_default();
            if titles.iter().filter(|title| *title == name).count() > 1 {
                let remedy = "give the column by its number, counted from 0";
                return Err(source.refuse("titles", format!("several columns are called {name:?}"), remedy));
            }
            titles.iter().position(|title| title == name).ok_or_else(|| {
                let remedy = if titles.is_empty() {
                    "there is no line of titles; give the column by its number, counted from 0".to_owned()
                } else {
                    format!("the titles are {}", titles.join(", "))
                };
                source.refuse("titles", format!("no column is called {name:?}"), remedy)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::hostile::damaged;

    const PLAIN: TableLayout = TableLayout { header: None, delimiter: b',', target: None };

    fn read(text: &str, layout: TableLayout) -> Result<(Array, Vec<f64>), DataError> {
        parse(text.as_bytes(), "t.csv", layout).map(|table| (table.inputs, table.targets))
    }

    #[test]
    fn a_first_line_that_could_be_both_is_refused_and_loses_no_example() {
        for (text, words) in [
            ("1,x,3\n4,5,6\n", &["line 1", "\"x\"", "header = true", "header = false"][..]),
            ("a,2,label\n4,5,6\n", &["column 2 holds \"2\"", "column 1 holds \"a\""]),
            ("1,,3\n4,5,6\n", &["column 2 holds nothing"]),
            ("1,2,1,\n4,5,1,\n", &["remove the delimiter at the end"]),
            ("1,2,cat\n4,5,dog\n", &["\"cat\""]),
            ("\"1\",\"2\",\"three\"\n4,5,6\n", &["\"three\""]),
            ("nan,b,c\n4,5,6\n", &["\"nan\""]),
            ("1,5;2,5\n3,5;4,5\n", &["delimiter = \";\""]),
            ("1;2;3\n4;5;6\n", &["delimiter = \";\""]),
            ("1 2 3\n", &["delimiter = \" \""]),
            ("\u{feff}1,x\n2,3\n", &["\"x\""]),
        ] {
            let error = read(text, PLAIN).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{text:?} gave {error}");
        }
        let titled = TableLayout { header: Some(true), ..PLAIN };
        assert_eq!(read("1,x,3\n4,5,6\n", titled).unwrap().1, [6.0]);
        let plain = TableLayout { header: Some(false), ..PLAIN };
        assert!(read("1,x,3\n4,5,6\n", plain).unwrap_err().to_string().contains("line 1, column 2"));
        assert_eq!(read("\"1\",\"2\"\n3,4\n", PLAIN).unwrap().1, [2.0, 4.0]);
    }

    #[test]
    fn what_was_decided_is_told_unless_somebody_said() {
        let note = |text: &str, header| parse(text.as_bytes(), "t.csv", TableLayout { header, ..PLAIN }).unwrap().note;
        let told = note("a,b\n1,2\n", None).unwrap();
        assert!(told.contains("read as titles (\"a\", \"b\")") && told.contains("header = false"), "{told}");
        assert!(note("1,2\n", None).unwrap().contains("read as an example"));
        assert_eq!((note("a,b\n1,2\n", Some(true)), note("1,2\n", Some(false))), (None, None));
    }

    #[test]
    fn a_title_of_two_columns_names_no_target() {
        let target = TargetColumn::Name("y".into());
        let layout = TableLayout { target: Some(&target), ..PLAIN };
        assert!(read("y,y\n1,2\n", layout).unwrap_err().to_string().contains("several columns"));
        assert_eq!(read("x,x,y\n1,2,3\n", layout).unwrap().1, [3.0]);
    }

    #[test]
    fn titles_are_recognised_and_the_target_is_last_by_default() {
        let (inputs, targets) = read("a, b ,label\n1,2,-1\n3.5,-4e2, 1\n", PLAIN).unwrap();
        assert_eq!(inputs, Array { shape: vec![2, 2], values: vec![1.0, 2.0, 3.5, -400.0] });
        assert_eq!(targets, [-1.0, 1.0]);
        let (inputs, _) = read("\u{feff}1,2\r\n3,4\r\n", PLAIN).unwrap();
        assert_eq!(inputs.values, [1.0, 3.0]);
    }

    #[test]
    fn the_target_is_found_by_name_or_number() {
        let text = "y;u;v\n9;1;2\n8;3;4\n";
        for target in [TargetColumn::Name("y".into()), TargetColumn::Index(0)] {
            let layout = TableLayout { delimiter: b';', target: Some(&target), ..PLAIN };
            let (inputs, targets) = read(text, layout).unwrap();
            assert_eq!((inputs.values, targets), (vec![1.0, 2.0, 3.0, 4.0], vec![9.0, 8.0]));
        }
        for target in [TargetColumn::Name("z".into()), TargetColumn::Index(3)] {
            let layout = TableLayout { delimiter: b';', target: Some(&target), ..PLAIN };
            assert!(read(text, layout).is_err());
        }
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, place) in [
            ("1,2\n3,x\n", "line 2, column 2"),
            ("a,b\n1,2\n,4\n", "line 3, column 1 (a)"),
            ("1,2\n3,nan\n", "line 2, column 2"),
            ("1,2\n3,inf\n", "line 2, column 2"),
            ("1,2\n1,2,3\n", "line 2"),
            ("1\n2\n", "line 1"),
            ("a,b\n", "end"),
            ("", "end"),
            ("\"1,2\n3,4", "line 1"),
        ] {
            let error = read(text, PLAIN).unwrap_err().to_string();
            assert!(error.contains("t.csv") && error.contains(place), "{text:?} gave {error}");
        }
        let titled = TableLayout { header: Some(false), ..PLAIN };
        assert!(read("a,b\n1,2\n", titled).unwrap_err().to_string().contains("line 1, column 1"));
        let numbers_as_titles = TableLayout { header: Some(true), ..PLAIN };
        assert_eq!(read("1,2\n3,4\n", numbers_as_titles).unwrap().1, [4.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in damaged(b"a,b,\"c\"\n1,2,-1\n3.5,-4e2,1\n0,0,1\n".to_vec())) {
            if let Ok(Table { inputs, targets, .. }) = parse(&bytes, "h.csv", PLAIN) {
                prop_assert_eq!(inputs.shape[0], targets.len());
                prop_assert_eq!(inputs.values.len(), inputs.shape[0] * inputs.shape[1]);
            }
        }

        #[test]
        fn what_is_written_is_read_back(rows in proptest::collection::vec(proptest::array::uniform3(-1e300_f64..1e300), 1..20)) {
            let text: String = rows.iter().map(|[a, b, c]| format!("{a:?},{b:?},{c:?}\n")).collect();
            let Table { inputs, targets, .. } = parse(text.as_bytes(), "r.csv", PLAIN).unwrap();
            prop_assert_eq!(inputs.values, rows.iter().flat_map(|row| [row[0], row[1]]).collect::<Vec<_>>());
            prop_assert_eq!(targets, rows.iter().map(|row| row[2]).collect::<Vec<_>>());
        }
    }
}
