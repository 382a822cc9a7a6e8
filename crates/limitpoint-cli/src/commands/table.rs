//! The table of final values on a terminal.

use std::io::IsTerminal;

use limitpoint::experiments::Summary;

use super::in_one_line;

/// Whether stdout wants colours: a terminal, and no NO_COLOR in the environment.
pub fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Aligned columns; winners are starred, and bold where there are colours.
pub fn summary(summary: &Summary, colours: bool) -> String {
    if summary.rows.is_empty() {
        return String::new();
    }
    let first = summary.rows.iter().map(|row| in_one_line(&row.label).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = summary
        .columns
        .iter()
        .enumerate()
        .map(|(c, column)| {
            let cells = summary.rows.iter().map(|row| row.cells.get(c).map_or(0, |cell| cell.text.chars().count()));
            cells.max().unwrap_or(0).max(in_one_line(&column.label).chars().count())
        })
        .collect();
    let mut out = " ".repeat(first);
    for (column, width) in summary.columns.iter().zip(&widths) {
        out += &format!("  {:>width$} ", in_one_line(&column.label));
    }
    out = out.trim_end().to_owned() + "\n";
    for row in &summary.rows {
        let mut line = format!("{:first$}", in_one_line(&row.label));
        for (cell, width) in row.cells.iter().zip(&widths) {
            let mark = if cell.winner { "*" } else { " " };
            let text = format!("{:>width$}{mark}", cell.text);
            line += "  ";
            line += &if colours && cell.winner { format!("\x1b[1;32m{text}\x1b[0m") } else { text };
        }
        out += line.trim_end();
        out.push('\n');
    }
    if summary.rows.iter().any(|row| row.cells.iter().any(|cell| cell.winner)) {
        out += "\n* the largest of its column\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use limitpoint::experiments::{SummaryCell, SummaryColumn, SummaryRow};

    fn example() -> Summary {
        let column = |label: &str| SummaryColumn { key: label.into(), label: label.into(), contest: true };
        let cell = |text: &str, winner| SummaryCell { mean: 1.0, spread: 0.0, winner, text: text.into() };
        Summary {
            columns: vec![column("γ of ℓ2"), column("log10 L")],
            rows: vec![
                SummaryRow {
                    label: "gradient".into(),
                    cells: vec![cell("1.00e-3", true), cell("-100.02", false)],
                    seeds: 1,
                    of: 1,
                },
                SummaryRow {
                    label: "sign".into(),
                    cells: vec![cell("9.00e-4", false), cell("-5", false)],
                    seeds: 1,
                    of: 1,
                },
            ],
        }
    }

    #[test]
    fn columns_line_up_and_winners_are_starred_without_colour() {
        let text = summary(&example(), false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("1.00e-3*") && !lines[2].contains('*'), "{text}");
        let place = |line: &str, word: &str| line[..line.find(word).unwrap() + word.len()].chars().count();
        assert_eq!(place(lines[1], "1.00e-3"), place(lines[2], "9.00e-4"));
        assert_eq!(place(lines[0], "log10 L"), place(lines[1], "-100.02"));
        assert!(!text.contains('\x1b') && summary(&example(), true).contains('\x1b'));
        assert_eq!(summary(&Summary::default(), true), "");
    }
}
