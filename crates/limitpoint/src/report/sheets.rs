//! Tables of an experiment or a sweep as files: CSV for programs, LaTeX and Markdown for papers.

use super::latex::latex;
use crate::experiments::{LongRow, LongTable};

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Full precision: mean, smallest and largest; also one row per run.
    Csv,
    /// A `tabular` with the rules of booktabs: mean ± half the range.
    Latex,
    /// The same as a table of Markdown.
    Markdown,
}

/// The tables in a format: names of files and their contents.
///
/// ```
/// use limitpoint::experiments::{LongRow, LongTable};
/// use limitpoint::report::{TableFormat, sheets};
/// let row = LongRow { optimiser: "sign".into(), settings: vec!["64".into()], seeds: 2, of: 2, cells: vec![[2.5e-4, 2e-4, 3e-4]] };
/// let quantities = vec![("margin.linf".into(), "ℓ∞ margin".into())];
/// let table = LongTable { settings: vec!["model.width".into()], quantities, rows: vec![row], ..Default::default() };
/// let (name, text) = &sheets(&table, TableFormat::Markdown)[0];
/// assert_eq!(name, "final-values.md");
/// assert!(text.contains("| sign | 64 | 2 | (2.50 ± 0.50)·10⁻⁴ |"), "{text}");
/// ```
pub fn sheets(table: &LongTable, format: TableFormat) -> Vec<(String, String)> {
    match format {
        TableFormat::Csv => vec![("final-values.csv".into(), groups_csv(table)), ("runs.csv".into(), runs_csv(table))],
        TableFormat::Latex => vec![("final-values.tex".into(), tabular(table))],
        TableFormat::Markdown => vec![("final-values.md".into(), markdown(table))],
    }
}

fn groups_csv(table: &LongTable) -> String {
    let mut head = vec!["optimiser".to_owned()];
    head.extend(table.settings.iter().cloned());
    head.extend(["seeds".to_owned(), "of".to_owned()]);
    for (column, _) in &table.quantities {
        head.extend(["mean", "low", "high"].map(|part| format!("{column}.{part}")));
    }
    let rows = table.rows.iter().map(|row| {
        let mut cells = vec![row.optimiser.clone()];
        cells.extend(row.settings.iter().cloned());
        cells.extend([row.seeds.to_string(), row.of.to_string()]);
        cells.extend(row.cells.iter().flatten().map(exact));
        cells
    });
    csv_text(std::iter::once(head).chain(rows))
}

fn runs_csv(table: &LongTable) -> String {
    let mut head = vec!["run".to_owned(), "optimiser".to_owned()];
    head.extend(table.settings.iter().cloned());
    head.extend(["seed", "state", "steps"].map(str::to_owned));
    head.extend(table.quantities.iter().map(|(column, _)| column.clone()));
    let rows = table.runs.iter().map(|run| {
        let mut cells = vec![run.run.clone(), run.optimiser.clone()];
        cells.extend(run.settings.iter().cloned());
        cells.extend([run.seed.to_string(), run.state.clone(), run.steps.to_string()]);
        cells.extend(run.cells.iter().map(exact));
        cells
    });
    csv_text(std::iter::once(head).chain(rows))
}

/// A number that reads back to the same bits; nothing for what is not one.
fn exact(value: &f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:e}") }
}

fn csv_text(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        // rows are equally long, and memory takes what is written to it
        let _ = writer.write_record(row);
    }
    writer.into_inner().map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Headings, and whether each column is of numbers.
fn headings(table: &LongTable) -> Vec<(String, bool)> {
    let mut all = vec![("optimiser".to_owned(), false)];
    all.extend(table.settings.iter().map(|key| (key.clone(), true)));
    all.push(("seeds".to_owned(), true));
    all.extend(table.quantities.iter().map(|(column, label)| {
        let label = if column == "log10_loss" { "log₁₀ L".to_owned() } else { label.clone() };
        (label, true)
    }));
    all
}

fn cells(table: &LongTable, row: &LongRow) -> Vec<String> {
    let mut all = vec![row.optimiser.clone()];
    all.extend(row.settings.iter().cloned());
    all.push(if row.seeds == row.of { row.of.to_string() } else { format!("{} of {}", row.seeds, row.of) });
    let shown = table.quantities.iter().zip(&row.cells);
    all.extend(
        shown.map(|((column, _), [mean, low, high])| in_words(column, *mean, 0.5 * (high - low), row.seeds > 1)),
    );
    all
}

/// `(2.50 ± 0.50)·10⁻⁴`, `−100.02 ± 0.01`, `99.2 ± 0.4 %`; `–` for what was not measured.
fn in_words(column: &str, mean: f64, spread: f64, several: bool) -> String {
    if !mean.is_finite() {
        return "–".to_owned();
    }
    let size = mean.abs().max(spread);
    let plain = column == "log10_loss" || column.starts_with("rate.") || size == 0.0 || (0.01..1e4).contains(&size);
    let (unit, sign) = match column {
        "test_accuracy" => (0.01, " %".to_owned()),
        _ if plain => (1.0, String::new()),
        _ => {
            let exponent = size.log10().floor() as i32;
            (10_f64.powi(exponent), format!("·{}", super::figures::power_of_ten(i64::from(exponent))))
        }
    };
    // three digits of the size, and one of the spread
    let places = |value: f64, digits: i32| if value > 0.0 { digits - 1 - value.log10().floor() as i32 } else { 0 };
    let least = if matches!(column, "test_accuracy" | "log10_loss") { 2 } else { places(size / unit, 3) };
    let decimals = least.max(places(spread / unit, 1)).clamp(0, 6) as usize;
    let number = |value: f64| format!("{:.decimals$}", value / unit).replace('-', "−");
    let both = if several { format!("{} ± {}", number(mean), number(spread)) } else { number(mean) };
    if several && sign.starts_with('·') { format!("({both}){sign}") } else { both + &sign }
}

fn markdown(table: &LongTable) -> String {
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let headings = headings(table);
    let rule: String = headings.iter().map(|(_, number)| if *number { "---:|" } else { "---|" }).collect();
    let mut out = line(headings.into_iter().map(|(heading, _)| heading).collect());
    out += &format!("|{rule}\n");
    table.rows.iter().for_each(|row| out += &line(cells(table, row)));
    out + "\nMeans over seeds, ± half the range.\n"
}

fn tabular(table: &LongTable) -> String {
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| latex(cell)).collect();
        format!("{} \\\\\n", cells.join(" & "))
    };
    let headings = headings(table);
    let columns: String = headings.iter().map(|(_, number)| if *number { 'r' } else { 'l' }).collect();
    let mut out = format!(
        "% limitpoint {}; needs \\usepackage{{booktabs}}; means over seeds, plus or minus half the range\n\
         \\begin{{tabular}}{{{columns}}}\n\\toprule\n",
        env!("CARGO_PKG_VERSION")
    );
    out += &line(headings.into_iter().map(|(heading, _)| heading).collect());
    out += "\\midrule\n";
    table.rows.iter().for_each(|row| out += &line(cells(table, row)));
    out + "\\bottomrule\n\\end{tabular}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::LongRun;

    fn table() -> LongTable {
        let row = |optimiser: &str, seeds, cells| LongRow {
            optimiser: optimiser.into(),
            settings: vec!["0.1, x".into()],
            seeds,
            of: 3,
            cells,
        };
        let run = LongRun {
            run: "a_1".into(),
            settings: vec!["0.1, x".into()],
            state: "healthy".into(),
            cells: vec![0.1 + 0.2, f64::NAN, 1e-300],
            ..LongRun::default()
        };
        LongTable {
            settings: vec!["rate|1".into()],
            quantities: ["margin.l2", "log10_loss", "test_accuracy"]
                .map(|key| (key.into(), format!("{key} γ_2")))
                .to_vec(),
            rows: vec![
                row("a_1", 3, vec![[1.2345, 1.0, 1.5], [-100.0, -101.0, -99.0], [0.99, 0.98, 1.0]]),
                row("b & c", 2, vec![[f64::NAN; 3], [-5.0, -5.0, -5.0], [0.5, 0.5, 0.5]]),
            ],
            runs: vec![run],
        }
    }

    #[test]
    fn csv_reads_back_to_the_same_bits() {
        let sheets = sheets(&table(), TableFormat::Csv);
        let mut reader = csv::Reader::from_reader(sheets[1].1.as_bytes());
        assert_eq!(reader.headers().unwrap().iter().nth(2), Some("rate|1"));
        let row = reader.records().next().unwrap().unwrap();
        let number = |place: usize| row[place].parse::<f64>().unwrap();
        assert_eq!((number(6).to_bits(), &row[7], number(8)), ((0.1_f64 + 0.2).to_bits(), "", 1e-300));
        let groups = &sheets[0].1;
        assert!(
            groups.starts_with("optimiser,rate|1,seeds,of,margin.l2.mean,margin.l2.low,margin.l2.high,"),
            "{groups}"
        );
        assert!(groups.contains("a_1,\"0.1, x\",3,3,1.2345e0,1e0,1.5e0"), "{groups}");
    }

    #[test]
    fn papers_get_words_and_no_raw_signs() {
        let text = &sheets(&table(), TableFormat::Markdown)[0].1;
        assert!(text.contains("| optimiser | rate\\|1 | seeds |") && text.contains("|---|---:|"), "{text}");
        assert!(text.contains("| a_1 | 0.1, x | 3 | 1.23 ± 0.25 | −100.00 ± 1.00 | 99.00 ± 1.00 % |"), "{text}");
        assert!(text.contains("| 2 of 3 | – |"), "{text}");
        let text = &sheets(&table(), TableFormat::Latex)[0].1;
        assert!(
            text.contains(r"a\_1 & 0.1, x & 3 & 1.23 $\pm{}$ 0.25 & $-{}$100.00") && text.contains(r"b \& c"),
            "{text}"
        );
        assert!(text.contains(r"rate$|$1") && text.contains(r"\begin{tabular}{lrrrrr}"), "{text}");
        // a row has as many cells as there are columns
        assert!(
            text.lines()
                .filter(|line| line.ends_with(r"\\"))
                .all(|line| line.replace(r"\&", "").matches('&').count() == 5)
        );
    }
}
