//! How many runs led to which kind of point: a table, and a picture of it.

use limitpoint::experiments::ProvedRun;
use limitpoint::proofs::PointKind;

/// Columns: name and colour.
const KINDS: [(&str, &str); 6] = [
    ("global maximum", "#1b7837"),
    ("local maximum", "#7fbf7b"),
    ("no local maximum", "#af8dc3"),
    ("undecided", "#d9d9d9"),
    ("refused", "#969696"),
    ("not asked", "#f0f0f0"),
];

/// Runs that differ in their seeds only, counted by kind.
pub struct Row {
    name: String,
    counts: [usize; KINDS.len()],
    /// The least share of the global maximum that is proven of one of them.
    share: f64,
}

/// Counts runs by kind; those in `missing` could not be asked, mostly because they do not separate their data.
pub fn count(runs: &[ProvedRun], missing: &[String]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |run: &str, kind: usize, share: f64| {
        let name = group(run);
        let at = rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
            rows.push(Row { name, counts: [0; KINDS.len()], share: 1.0 });
            rows.len() - 1
        });
        rows[at].counts[kind] += 1;
        rows[at].share = rows[at].share.min(share);
    };
    for run in runs {
        let (kind, share) = match &run.outcome {
            Err(_) => (4, 1.0),
            Ok((document, _)) => match document.findings.kind {
                PointKind::GlobalMaximum { .. } => (0, 1.0),
                PointKind::LocalMaximum { share, .. } => (1, share),
                PointKind::NotLocalMaximum { share, .. } => (2, share),
                PointKind::Undecided { share } => (3, share),
            },
        };
        add(&run.run, kind, share);
    }
    missing.iter().for_each(|run| add(run, 5, 1.0));
    rows
}

/// The name of a run without its seed.
fn group(run: &str) -> String {
    match run.rsplit_once("seed") {
        Some((before, seed)) if !seed.is_empty() && seed.chars().all(|c| c.is_ascii_digit()) => {
            before.trim_end_matches(['-', '/', ' ', ',']).to_owned()
        }
        _ => run.to_owned(),
    }
}

/// The table, in aligned columns that Markdown reads too.
pub fn table(rows: &[Row]) -> String {
    let first = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(4);
    let mut out = format!("| {:first$} | seeds |", "runs");
    KINDS.iter().for_each(|(kind, _)| out += &format!(" {kind} |"));
    out += " least share proven |\n";
    out += &format!("|{:-<1$}|-------|", "", first + 2);
    KINDS.iter().for_each(|(kind, _)| out += &format!("{:-<1$}|", "", kind.len() + 2));
    out += "--------------------|\n";
    for row in rows {
        out += &format!("| {:first$} | {:5} |", row.name, row.counts.iter().sum::<usize>());
        row.counts.iter().zip(KINDS).for_each(|(count, (kind, _))| out += &format!(" {count:>0$} |", kind.len()));
        out += &format!(" {:16.2} % |\n", 100.0 * row.share);
    }
    out
}

/// The shares as bars, one a row.
pub fn figure(rows: &[Row]) -> String {
    let (left, wide, high) = (190.0, 520.0, 22.0);
    let height = 58.0 + high * rows.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        left + wide + 20.0
    );
    for (k, row) in rows.iter().enumerate() {
        let (total, top) = (row.counts.iter().sum::<usize>().max(1) as f64, 12.0 + high * k as f64);
        let name = row.name.replace('&', "&amp;").replace('<', "&lt;");
        out += &format!("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>\n", left - 8.0, top + 13.0);
        let mut from = left;
        for (count, (_, colour)) in row.counts.iter().zip(KINDS).filter(|(count, _)| **count > 0) {
            let width = wide * *count as f64 / total;
            out += &format!(
                "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{}\" fill=\"{colour}\"/>\n",
                high - 5.0
            );
            if width > 22.0 {
                let middle = from + 0.5 * width;
                out += &format!("<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{count}</text>\n", top + 13.0);
            }
            from += width;
        }
    }
    let mut x = left - 100.0;
    let y = height - 22.0;
    for (name, colour) in KINDS {
        out += &format!("<rect x=\"{x}\" y=\"{y}\" width=\"11\" height=\"11\" fill=\"{colour}\" stroke=\"#999\"/>\n");
        out += &format!("<text x=\"{}\" y=\"{}\">{name}</text>\n", x + 15.0, y + 10.0);
        x += 32.0 + 6.2 * name.len() as f64;
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_without_their_seeds() {
        assert_eq!(group("gradient-seed12"), "gradient");
        assert_eq!(group("widths=[3]/adam-seed1"), "widths=[3]/adam");
        assert_eq!(group("reseeded"), "reseeded");
        let rows = count(&[], &["sign-seed1".into(), "sign-seed2".into(), "adam-seed1".into()]);
        let text = table(&rows);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(
            text.lines().nth(2).is_some_and(|line| line.starts_with("| sign | ") && line.contains(" 2 |")),
            "{text}"
        );
        assert!(figure(&rows).matches("<text").count() >= 2 + KINDS.len());
    }
}
