//! Failed runs, in as few rows as say it.

use super::settings::{setting_of, swept};
use super::words::{count, list};
use crate::experiments::{ExperimentRecord, FailureKind, RunRecord};

/// Settings and seeds named in a row.
const NAMED: usize = 4;

/// Runs that ended in trouble or could not be run: one row for every optimiser and reason, where reasons that differ in
/// numbers only (`… at step 12`) are one.
pub(super) fn kinds(record: &ExperimentRecord) -> Vec<FailureKind> {
    let swept = swept(record);
    let mut kinds: Vec<(&str, String, Vec<&RunRecord>)> = Vec::new();
    for run in record.runs.iter().filter(|run| run.failed) {
        let reason = without_numbers(&run.stop);
        match kinds.iter_mut().find(|(optimiser, known, _)| *optimiser == run.optimiser && *known == reason) {
            Some((_, _, runs)) => runs.push(run),
            None => kinds.push((&run.optimiser, reason, vec![run])),
        }
    }
    let row = |(optimiser, _, runs): (&str, String, Vec<&RunRecord>)| {
        let stop = runs.first().map_or("", |run| run.stop.trim());
        FailureKind {
            optimiser: optimiser.to_owned(),
            runs: runs.len(),
            of: record.runs.iter().filter(|run| run.optimiser == optimiser).count(),
            which: which(&swept, &runs),
            reason: if stop.is_empty() { "no reason was recorded".to_owned() } else { stop.to_owned() },
        }
    };
    kinds.into_iter().map(row).collect()
}

/// `rate=10 (3 seeds), rate=30 (seed 2) and 2 more`.
fn which(swept: &[&str], runs: &[&RunRecord]) -> String {
    let mut settings: Vec<(String, Vec<u64>)> = Vec::new();
    for run in runs {
        let setting = setting_of(swept, run);
        match settings.iter_mut().find(|(known, _)| *known == setting) {
            Some((_, seeds)) => seeds.push(run.seed),
            None => settings.push((setting, vec![run.seed])),
        }
    }
    let seeds = |seeds: &[u64]| match seeds {
        [only] => format!("seed {only}"),
        several => count(several.len(), "seed"),
    };
    if let [(setting, some)] = &settings[..]
        && setting.is_empty()
    {
        return seeds(some);
    }
    let words: Vec<String> = settings.iter().map(|(setting, some)| format!("{setting} ({})", seeds(some))).collect();
    list(&words, NAMED)
}

/// A reason with its numbers left out.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !(c.is_ascii_digit() || ".+-−e,".contains(*c))).collect()
}

#[cfg(test)]
mod tests {
    use crate::experiments::RunRecord;
    use crate::experiments::analysis::analyse;
    use crate::experiments::analysis::tests::{record, run};

    fn at(optimiser: &str, rate: &str, seed: u64, stop: &str, margin: f64) -> RunRecord {
        let (healthy, failed) = (stop.is_empty(), !stop.is_empty());
        let point = vec![("rate".to_owned(), rate.to_owned())];
        let columns: &[(&str, &[f64])] =
            &[("step", &[0.0, 5.0]), ("log10_loss", &[0.0, -3.0]), ("margin.l2", &[0.0, margin])];
        RunRecord { point, stop: stop.to_owned(), healthy, failed, ..run(optimiser, seed, columns) }
    }

    /// A mean over runs of which one failed is one of the others, and says so.
    #[test]
    fn failed_runs_have_one_row_and_no_part_in_means() {
        let record = record(vec![
            at("gd", "1", 0, "", 0.2),
            at("gd", "1", 1, "ln L = NaN at step 5", 9e9),
            at("gd", "10", 0, "ln L = NaN at step 3", f64::NAN),
            at("gd", "10", 1, "ln L = NaN at step 4", f64::NAN),
            at("sign", "1", 0, "", 0.1),
        ]);
        let analysis = analyse(&record);
        let [failure] = &analysis.failure_kinds[..] else { panic!("{:?}", analysis.failure_kinds) };
        assert_eq!(analysis.failures.len(), 3);
        assert_eq!((failure.runs, failure.of), (3, 4));
        assert_eq!(failure.which, "rate=1 (seed 1) and rate=10 (2 seeds)");
        assert_eq!(failure.reason, "ln L = NaN at step 5");
        let row = &analysis.summary.rows[0];
        let place = |key: &str| analysis.summary.columns.iter().position(|column| column.key == key).unwrap();
        assert_eq!(row.seeds_in_words(), "1 of 2 seeds");
        assert_eq!(row.cells[place("margin.l2")].text, "2.00e-1");
        assert_eq!(analysis.summary.rows[1].seeds_in_words(), "0 of 2 seeds");
        // the curve of the seed that did not fail is not cut short either
        let margin = analysis.groups[0].bands.iter().find(|band| band.column == "margin.l2").unwrap();
        assert_eq!(margin.high.last(), Some(&0.2));
    }
}
