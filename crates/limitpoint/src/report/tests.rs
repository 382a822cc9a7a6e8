use proptest::prelude::*;

use super::budget::evenly;
use super::html;
use super::html::{escape, grouped, script_safe};
use super::page_data::Number;
use crate::experiments::{Analysis, CertificateRecord, ExperimentRecord, Finding};

/// What [`fixture`] is made of.
mod records {
    pub use crate::experiments::*;
}

/// Also the fixture of the browser test of the command line.
mod fixture;

/// The JSON the page carries, as the script would read it.
fn data(page: &str) -> serde_json::Value {
    let (_, after) = page.split_once("id=\"data\">").unwrap();
    let (json, _) = after.split_once("</script>").unwrap();
    assert!(!json.contains(['<', '\u{2028}', '\u{2029}']));
    serde_json::from_str(json).unwrap()
}

/// The page without the drawing library, which mentions addresses in comments.
fn own_part(page: &str) -> String {
    page.replace(include_str!("assets/plotly-cartesian.min.js"), "")
}

#[test]
fn names_cannot_leave_their_place() {
    let (mut record, mut analysis) = fixture::plane();
    let evil = "</script><b>\"'&\u{2028}\u{2029}<!--{{data}}";
    record.title = evil.into();
    record.config = evil.into();
    record.runs[0].name = evil.into();
    record.runs[0].stop = evil.into();
    analysis.groups[0].label = evil.into();
    analysis.summary.rows[0].label = evil.into();
    analysis.findings[0].text = evil.into();
    let page = html(&record, &analysis);
    let own = own_part(&page);
    assert!(!own.contains("<b>\"") && !own.contains("<!--"), "a name was read as HTML");
    assert_eq!(page.matches("</script>").count(), 4, "theme, data, drawing library, script");
    assert_eq!(data(&page)["groups"][0]["label"], evil);
    assert!(own.contains("&lt;/script&gt;&lt;b&gt;&quot;&#39;&amp;"));
    assert!(own.contains("{{data}}"), "text of a record must not be taken for a place of the template");
}

#[test]
fn the_page_loads_nothing() {
    for (record, analysis) in [fixture::digits(), fixture::plane(), fixture::bare()] {
        let page = html(&record, &analysis);
        let own = own_part(&page);
        for load in [
            "src=",
            "@import",
            "url(",
            "fetch(",
            "XMLHttpRequest",
            "import(",
            "href=\"http",
            "href='http",
            "<iframe",
            "<link rel=\"style",
        ] {
            assert!(!own.contains(load), "{load} in the page");
        }
        let allowed = ["http://www.w3.org/2000/svg"]; // a name, not a place
        let rest = allowed.iter().fold(own, |text, name| text.replace(name, ""));
        assert!(!rest.contains("http:") && !rest.contains("https:"), "an address in the page");
        assert!(page.contains("default-src 'none'"), "the browser is told to load nothing");
    }
}

#[test]
fn every_column_of_every_run_is_in_the_data() {
    let (record, analysis) = fixture::digits();
    let page = data(&html(&record, &analysis));
    assert_eq!(page["runs"].as_array().unwrap().len(), 24);
    for (run, shown) in record.runs.iter().zip(page["runs"].as_array().unwrap()) {
        assert_eq!(shown["columns"], serde_json::json!(run.metrics.columns));
        for (name, (values, shown)) in
            run.metrics.columns.iter().zip(run.metrics.values.iter().zip(shown["values"].as_array().unwrap()))
        {
            let shown = shown.as_array().unwrap();
            if values.iter().all(|value| value.is_nan()) {
                assert!(shown.is_empty(), "{name}");
                continue;
            }
            assert!((24..=values.len()).contains(&shown.len()), "{name}: {} rows", shown.len());
            for (row, shown) in evenly(values.len(), shown.len()).into_iter().zip(shown) {
                let value = values[row];
                match shown.as_f64() {
                    Some(shown) => {
                        assert!((value - shown).abs() <= 1e-5 * value.abs(), "{name}: {value} became {shown}")
                    }
                    None => assert!(value.is_nan() && shown.is_null(), "{name}: {value} is missing"),
                }
            }
        }
    }
    for (group, shown) in analysis.groups.iter().zip(page["groups"].as_array().unwrap()) {
        let columns: Vec<&str> = group.bands.iter().map(|band| band.column.as_str()).collect();
        let shown_columns: Vec<&str> =
            shown["bands"].as_array().unwrap().iter().map(|b| b["column"].as_str().unwrap()).collect();
        assert_eq!(columns, shown_columns);
        assert_eq!(shown["axes"].as_array().unwrap().len(), 1, "all columns share their steps");
    }
}

/// Five hundred runs: a page that can be sent and opened, with its failures in a few lines.
#[test]
fn the_page_of_a_large_sweep_is_small() {
    let (record, analysis) = fixture::sweep(50);
    assert_eq!((record.runs.len(), analysis.groups.len()), (500, 250));
    let page = html(&record, &analysis);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    let shown = data(&page);
    let groups = shown["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 250, "every setting has its curves");
    for group in groups {
        let columns: Vec<&str> =
            group["bands"].as_array().unwrap().iter().map(|b| b["column"].as_str().unwrap()).collect();
        assert_eq!(columns, ["log10_loss", "margin.l1", "margin.l2", "margin.linf", "margin.spectral"]);
        // those that failed ended early
        assert!(group["seeds"] == 0 || group["axes"][0]["step"].as_array().unwrap().len() >= 16, "{}", group["label"]);
    }
    let [sweep] = &shown["sweeps"].as_array().unwrap()[..] else { panic!("one swept key") };
    assert_eq!((sweep["key"].as_str(), sweep["panels"].as_array().map(Vec::len)), (Some("model.width"), Some(6)));
    let own = own_part(&page);
    let (_, failures) = own.split_once("<h2>Failed runs</h2>").unwrap();
    let (failures, _) = failures.split_once("</table>").unwrap();
    assert_eq!(failures.matches("<tr>").count(), 2, "a heading and one row: {failures}");
    assert!(failures.contains("ln L = NaN at step") && failures.contains("of 100</td>"), "{failures}");
    assert!(own.contains(">0 of 2 seeds<") && own.contains(">1 of 2 seeds<"), "means say how many seeds they are of");
}

#[test]
fn the_page_begins_with_a_picture() {
    let (record, analysis) = fixture::digits();
    let own = own_part(&html(&record, &analysis));
    let place = |words: &str| own.find(words).unwrap_or_else(|| panic!("{words} is not in the page"));
    let order =
        ["<h1>", "id=\"standing\"", "class=\"description\"", "id=\"plots\"", "id=\"findings\"", "id=\"final-values\""];
    assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{order:?}");
    let (_, picture) = own.split_once("<table class=\"standing\">").unwrap();
    let (picture, _) = picture.split_once("</table>").unwrap();
    assert_eq!(picture.matches("--share:").count(), 8 * 4, "optimisers × norms");
    assert!(picture.contains("optimum 1.21e-1") && picture.contains("best "), "{picture}");
    assert!(picture.contains("class=\"own strong first\""), "{picture}");
    // a finding keeps its numbers behind a click
    assert_eq!(own.matches("<details><summary>Numbers</summary>").count(), analysis.findings.len());
}

#[test]
fn the_same_record_gives_the_same_page() {
    let page = || {
        let (record, analysis) = fixture::digits();
        html(&record, &analysis)
    };
    assert!(page() == page());
}

#[test]
fn words_and_tables_need_no_script() {
    let (record, analysis) = fixture::digits();
    let own = own_part(&html(&record, &analysis));
    for words in [
        "<h1>Which margin does each optimiser maximise on digits?</h1>",
        "<li>1,437 examples</li>",
        "<li>24 runs</li>",
        "as expected</p>",
        "not as expected</p>",
        "no prediction</p>",
        "⚠ 1 of 3 in trouble:</b> step size fell below 1e-300",
        "2 of 3: log₁₀ L below -60",
        "<th scope=\"row\">adam-s2</th><td>2</td><td>98,046</td>",
        "norm = &quot;linf&quot;",
    ] {
        assert!(own.contains(words), "{words} is not in the page");
    }
    assert_eq!(own.matches("class=\"winner\"").count(), 4, "one winner for each contested column");
}

#[test]
fn empty_parts_are_left_out() {
    let (record, _) = fixture::bare();
    let own = own_part(&html(&record, &Analysis::default()));
    assert!(
        !own.contains("id=\"findings\"") && !own.contains("id=\"final-values\"") && !own.contains("Resolved recipe")
    );
    assert!(own.contains("<h1>bare</h1>"), "the name stands in for a missing title");
    let findings = vec![Finding { title: "one".into(), ..Finding::default() }];
    let own = own_part(&html(&ExperimentRecord::default(), &Analysis { findings, ..Analysis::default() }));
    assert!(own.contains("id=\"findings\"") && !own.contains("All runs"));
}

#[test]
fn certificates_are_shown_where_there_are_any() {
    let (mut record, analysis) = fixture::plane();
    assert!(!own_part(&html(&record, &analysis)).contains("id=\"certificates\""));
    let certificate = |holds, verdict: &str| {
        let (statement, evidence) = ("the claim <1>".into(), "a gap of 3e-4".into());
        Some(CertificateRecord { statement, holds, verdict: verdict.into(), evidence, tau: None })
    };
    let name = record.runs[0].name.clone();
    record.runs[0].certificate = certificate(Some(true), "certified");
    let own = own_part(&html(&record, &analysis));
    for words in ["id=\"certificates\"", "the claim &lt;1&gt;", "a gap of 3e-4"] {
        assert!(own.contains(words), "{words}");
    }
    for (holds, mark) in [(Some(true), "✓"), (Some(false), "✗"), (None, "○")] {
        record.runs[0].certificate = certificate(holds, "so it is");
        let own = own_part(&html(&record, &analysis));
        let (_, row) = own.split_once("<h2>Certificates</h2>").unwrap();
        let (row, _) = row.split_once("</tr>\n</tbody>").unwrap();
        assert!(row.contains(&name) && row.contains(&format!("{mark}</span> so it is")), "{row}");
    }
}

#[test]
fn whole_numbers_are_grouped_in_thousands() {
    let texts: Vec<String> = [0, 12, 123, 1234, 123_456, 1_234_567].map(grouped).to_vec();
    assert_eq!(texts, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
}

#[test]
fn assets_cannot_end_their_own_element() {
    for script in [
        include_str!("assets/report.js"),
        include_str!("assets/controls.js"),
        include_str!("assets/plots.js"),
        include_str!("assets/sweeps.js"),
        include_str!("assets/pictures.js"),
        include_str!("assets/plotly-cartesian.min.js"),
    ] {
        assert!(!script.contains("</script") && !script.contains("<!--"));
    }
    assert!(!include_str!("assets/style.css").contains("</style"));
    assert!(include_str!("assets/plotly-cartesian.LICENSE").contains("MIT"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn escaped_text_has_no_markup(text in "\\PC*") {
        let escaped = escape(&text);
        prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        let back = escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
        prop_assert_eq!(back, text);
    }

    #[test]
    fn safe_json_means_the_same(text in "[\\PC\u{2028}\u{2029}</!-]*") {
        let safe = script_safe(&serde_json::to_string(&text).unwrap());
        let harmful = safe.contains(['<', '\u{2028}', '\u{2029}']);
        prop_assert!(!harmful, "{}", safe);
        prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn numbers_keep_their_digits(value in proptest::num::f64::ANY) {
        let text = serde_json::to_string(&Number { value, digits: 7 }).unwrap();
        match serde_json::from_str::<Option<f64>>(&text).unwrap() {
            Some(shown) => prop_assert!((value - shown).abs() <= 5.1e-7 * value.abs() + 5e-324),
            None => prop_assert!(!value.is_finite()),
        }
    }
}
