//! The table of final values on a terminal.

use std::io::IsTerminal;

use limitpoint::experiments::{FailedRun, Summary};

/// Whether stdout wants colours: a terminal, and no NO_COLOR in the environment.
pub fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Most characters of a reason in the table of failed runs.
const LONGEST_REASON: usize = 100;

/// Failed runs and why, one a line; nothing if there are none.
pub fn failures(failures: &[FailedRun], runs: usize) -> String {
    if failures.is_empty() {
        return String::new();
    }
    let width = failures.iter().map(|failure| failure.run.chars().count()).max().unwrap_or(0);
    let mut out = format!("\n{} of {runs} runs failed:\n", failures.len());
    for FailedRun { run, reason } in failures {
        let mut reason = reason.replace('\n', " ");
        if reason.chars().count() > LONGEST_REASON {
            reason = reason.chars().take(LONGEST_REASON - 1).collect::<String>() + "…";
        }
        out += &format!("  {run:width$}  {reason}\n");
    }
    out
}

/// Aligned columns; winners are starred, and bold where there are colours. Where runs failed, a column says of how many
/// seeds the means are.
pub fn summary(summary: &Summary, colours: bool) -> String {
    if summary.rows.is_empty() {
        return String::new();
    }
    let first = summary.rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = summary
        .columns
        .iter()
        .enumerate()
        .map(|(c, column)| {
            let cells = summary.rows.iter().map(|row| row.cells.get(c).map_or(0, |cell| cell.text.chars().count()));
            cells.max().unwrap_or(0).max(column.label.chars().count())
        })
        .collect();
    let mut out = " ".repeat(first);
    for (column, width) in summary.columns.iter().zip(&widths) {
        out += &format!("  {:>width$} ", column.label);
    }
    let failed = summary.rows.iter().any(|row| row.seeds < row.of);
    if failed {
        out += "  means of";
    }
    out = out.trim_end().to_owned() + "\n";
    for row in &summary.rows {
        let mut line = format!("{:first$}", row.label);
        for (cell, width) in row.cells.iter().zip(&widths) {
            let mark = if cell.winner { "*" } else { " " };
            let text = format!("{:>width$}{mark}", cell.text);
            line += "  ";
            line += &if colours && cell.winner { format!("\x1b[1;32m{text}\x1b[0m") } else { text };
        }
        if failed {
            line += &format!("  {}", row.seeds_in_words());
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
        let row = |label: &str, cells| SummaryRow { label: label.into(), cells, seeds: 5, of: 5 };
        Summary {
            columns: vec![column("γ of ℓ2"), column("log10 L")],
            rows: vec![
                row("gradient", vec![cell("1.00e-3", true), cell("-100.02", false)]),
                row("sign", vec![cell("9.00e-4", false), cell("-5", false)]),
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

    #[test]
    fn means_say_how_many_seeds_they_are_of_where_runs_failed() {
        let mut table = example();
        assert!(!summary(&table, false).contains("seeds"));
        table.rows[1].seeds = 4;
        let text = summary(&table, false);
        assert!(text.contains("means of") && text.contains("-5   4 of 5 seeds"), "{text}");
        let failed = |run: &str, reason: String| FailedRun { run: run.into(), reason };
        let text = failures(&[failed("a-seed1", "no\nnumber".into()), failed("b", "x".repeat(300))], 7);
        assert!(text.contains("2 of 7 runs failed:\n  a-seed1  no number\n  b        xxx"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 120));
        assert_eq!(failures(&[], 7), "");
    }
}
