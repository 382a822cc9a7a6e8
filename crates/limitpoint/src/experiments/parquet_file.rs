//! A table of measurements as a Parquet file.

use std::sync::Arc;

use parquet::basic::{Repetition, Type as Physical};
use parquet::data_type::{DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::record::Metrics;

/// Columns that count and are whole numbers.
const COUNTERS: [&str; 2] = ["step", "epoch"];

/// The bytes of a Parquet file with one row group; `step` and `epoch` are 64-bit integers, all other columns doubles.
///
/// ```
/// use limitpoint::experiments::{Metrics, to_parquet};
/// let table = Metrics { columns: vec!["step".into(), "log10_loss".into()], values: vec![vec![1.0], vec![-800.5]] };
/// assert_eq!(&to_parquet(&table).unwrap()[..4], b"PAR1");
/// ```
pub fn to_parquet(table: &Metrics) -> Result<Vec<u8>, ParquetError> {
    let is_counter = |name: &String| COUNTERS.contains(&name.as_str());
    let field = |name: &String| {
        let kind = if is_counter(name) { Physical::INT64 } else { Physical::DOUBLE };
        Type::primitive_type_builder(name, kind).with_repetition(Repetition::REQUIRED).build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("metrics").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().set_created_by("limitpoint".into()).build());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties)?;
    let mut group = writer.next_row_group()?;
    for (name, values) in table.columns.iter().zip(&table.values) {
        let Some(mut column) = group.next_column()? else { break };
        if is_counter(name) {
            let whole: Vec<i64> = values.iter().map(|x| *x as i64).collect();
            column.typed::<Int64Type>().write_batch(&whole, None, None)?;
        } else {
            // a resumed run has read its rows from text, where one NaN is like the other
            let one_nan: Vec<f64> = values.iter().map(|x| if x.is_nan() { f64::NAN } else { *x }).collect();
            column.typed::<DoubleType>().write_batch(&one_nan, None, None)?;
        }
        column.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nans_of_any_sign_give_the_same_file() {
        let table = |nan: f64| Metrics { columns: vec!["x".into()], values: vec![vec![1.0, nan, -0.0]] };
        assert_eq!(to_parquet(&table(f64::NAN)).unwrap(), to_parquet(&table(-f64::NAN)).unwrap());
    }
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn what_is_written_is_read_back() {
        let columns = ["step", "epoch", "log10_loss", "margin.l2"].map(String::from).to_vec();
        let values = vec![vec![0.0, 7.0], vec![0.0, 7.0], vec![-0.5, -1e5], vec![f64::NAN, 1.0 / 3.0]];
        let table = Metrics { columns: columns.clone(), values };
        let bytes = to_parquet(&table).unwrap();
        assert_eq!(bytes, to_parquet(&table).unwrap());
        let path = std::env::temp_dir().join(format!("limitpoint-parquet-{}", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        let last: Vec<(String, Field)> = rows[1].get_column_iter().map(|(n, f)| (n.clone(), f.clone())).collect();
        assert_eq!(last.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), columns);
        assert_eq!(last[0].1, Field::Long(7));
        assert_eq!(last[2].1, Field::Double(-1e5));
        assert_eq!(last[3].1, Field::Double(1.0 / 3.0));
    }
}
