//! Figures are well-formed, repeat bit for bit, and show every group.

use super::{Figure, FigureError, FigureRequest, chosen_figures, figures, name, typeface};
use crate::experiments::{ExperimentRecord, Metrics, ReferenceLine, RunRecord, analyse};

fn run(optimiser: &str, seed: u64, columns: &[(&str, Vec<f64>)]) -> RunRecord {
    let metrics = Metrics {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        values: columns.iter().map(|(_, values)| values.clone()).collect(),
    };
    RunRecord { optimiser: optimiser.into(), seed, healthy: true, metrics, ..Default::default() }
}

/// Three optimisers, two seeds each, one of them with a name that XML must escape.
fn record() -> ExperimentRecord {
    let steps: Vec<f64> = std::iter::once(0.0).chain((0..60).map(|i| 1.2_f64.powi(i).round())).collect();
    let mut runs = Vec::new();
    for (place, optimiser) in ["gd", "sign & <momentum>", "mirror"].into_iter().enumerate() {
        for seed in 0..2 {
            let of = |value: &dyn Fn(f64) -> f64| steps.iter().map(|step| value(*step)).collect::<Vec<f64>>();
            let (slope, shift) = (1.0 + place as f64, 0.01 * seed as f64);
            runs.push(run(
                optimiser,
                seed,
                &[
                    ("step", steps.clone()),
                    ("log10_loss", of(&|t| 1.0 - slope * t.sqrt())),
                    ("margin.l2", of(&|t| 0.05 * slope * (0.3 + shift - 1.0 / (1.0 + t)))),
                    ("margin.max(l2,linf)", of(&|t| if t < 100.0 { f64::NAN } else { 1e-6 * t.ln() })),
                    ("norm.l2", of(&|t| (2.0 + t).ln())),
                    ("balance_drift.euclidean", of(&|t| 1e-7 * t)),
                    ("balance_drift.hyperbolic", of(&|_| f64::NAN)),
                ],
            ));
        }
    }
    let references =
        vec![ReferenceLine { column: "margin.l2".into(), value: 0.05, label: "exact \"optimum\" < 1".into() }];
    ExperimentRecord { runs, references, ..Default::default() }
}

fn drawn(record: &ExperimentRecord) -> Vec<Figure> {
    figures(record, &analyse(record))
}

/// Checks nesting, quoting and escaping; returns the names of all elements.
fn elements(xml: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut all = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("tags end");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closes what is open");
            continue;
        }
        let body = tag.strip_suffix('/').unwrap_or(tag);
        let (name, mut attributes) = body.split_once(' ').unwrap_or((body, ""));
        while let Some((key, after)) = attributes.trim_start().split_once("=\"") {
            assert!(!key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "attribute {key}");
            let (value, after) = after.split_once('"').expect("values are quoted");
            check_text(value);
            attributes = after;
        }
        assert!(attributes.trim().is_empty(), "attributes of {tag}");
        all.push(name.to_owned());
        if !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "everything is closed: {open:?}");
    all
}

fn check_text(text: &str) {
    for (place, _) in text.match_indices('&') {
        let entity = text[place..].split_inclusive(';').next().unwrap_or_default();
        assert!(["&amp;", "&lt;", "&gt;", "&quot;", "&apos;"].contains(&entity), "{entity}");
    }
}

#[test]
fn every_measured_quantity_has_a_figure() {
    let names: Vec<String> = drawn(&record()).into_iter().map(|figure| figure.name).collect();
    assert_eq!(names, ["loss", "margin-l2", "margin-max-l2-linf", "norm-l2", "balance-euclidean"]);
    assert_eq!(name("norm", "l4/3"), "norm-l4-3");
}

#[test]
fn figures_are_well_formed_and_show_every_group() {
    for Figure { name, svg, .. } in drawn(&record()) {
        let elements = elements(&svg);
        assert_eq!(elements[0], "svg", "{name}");
        assert!(svg.contains("width=\"340pt\"") && svg.contains("Latin Modern Roman"), "{name}");
        for colour in ["#0072B2", "#D55E00", "#009E73"] {
            let lines = svg.split("<polyline").skip(1).filter(|line| line.split('>').next().unwrap().contains(colour));
            assert!(lines.count() >= 2, "{name}: a sample in the legend and a line for {colour}");
        }
        for label in ["\ngd\n", "sign &amp; &lt;momentum&gt;", "\nmirror\n"] {
            assert!(svg.contains(label), "{name}: {label}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
    }
}

#[test]
fn ranges_over_seeds_are_shaded_and_references_are_named() {
    let figures = drawn(&record());
    assert!(figures[1].svg.contains("<polygon") && figures[1].svg.contains("exact "), "{}", figures[1].name);
    assert!(!figures[0].svg.contains("<polygon"), "equal seeds have no range");
    for exponent in ["0", "3", "−400"] {
        let raised = format!("\n10<tspan dy=\"-36\" font-size=\"70\">{exponent}</tspan>\n");
        assert!(figures[0].svg.contains(&raised), "{raised}");
    }
    assert!(figures[2].svg.contains("(10<tspan dy=\"-36\" font-size=\"70\">−5</tspan><tspan dy=\"36\">)</tspan>"));
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    assert_eq!(drawn(&record()), drawn(&record()));
}

#[test]
fn little_or_no_data_is_no_trouble() {
    assert!(drawn(&ExperimentRecord::default()).is_empty());
    let lone =
        run("gd", 0, &[("step", vec![0.0, 5.0]), ("log10_loss", vec![0.0, -3.0]), ("margin.l2", vec![1.0, 0.0])]);
    let start = run("gd", 0, &[("step", vec![0.0]), ("log10_loss", vec![0.0])]);
    assert!(drawn(&ExperimentRecord { runs: vec![start], ..Default::default() }).is_empty());
    let figures = drawn(&ExperimentRecord { runs: vec![lone], ..Default::default() });
    assert_eq!(figures.len(), 2);
    figures.iter().for_each(|figure| assert!(elements(&figure.svg).len() > 5));
}

#[test]
fn many_groups_make_a_longer_legend() {
    let runs = (0..40).map(|i| {
        run(&format!("optimiser-{i}"), 0, &[("step", vec![1.0, 10.0]), ("log10_loss", vec![0.0, -f64::from(i)])])
    });
    let figures = drawn(&ExperimentRecord { runs: runs.collect(), ..Default::default() });
    elements(&figures[0].svg);
    assert!((0..40).all(|i| figures[0].svg.contains(&format!("\noptimiser-{i}\n"))));
}

/// A sweep of two settings with two seeds each.
fn swept() -> ExperimentRecord {
    let mut runs = Vec::new();
    for (width, rate, seed) in (0..3).flat_map(|w| (0..2).flat_map(move |r| (0..2).map(move |s| (w, r, s)))) {
        let margin = 0.1 * f64::from(width + 1) + 0.01 * f64::from(seed) + 0.3 * f64::from(rate);
        let columns = [("step", vec![1.0, 10.0]), ("log10_loss", vec![0.0, -5.0]), ("margin.linf", vec![0.0, margin])];
        runs.push(RunRecord {
            point: vec![
                ("model.width".into(), (16 << width).to_string()),
                ("schedule.kind".into(), ["slow", "fast & free"][rate as usize].into()),
            ],
            ..run("gd", seed as u64, &columns)
        });
    }
    ExperimentRecord { runs, ..Default::default() }
}

#[test]
fn sweeps_have_lines_with_bands_and_maps_with_a_scale() {
    let figures = drawn(&swept());
    let named = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("{name}"));
    let against = named("against-model-width-margin-linf");
    assert!(against.svg.contains("<polygon") && against.svg.contains("\nmodel.width\n"), "{}", against.svg);
    for tick in ["\n16\n", "\n32\n", "\n64\n", "ℓ∞ margin"] {
        assert!(against.svg.contains(tick), "{tick}");
    }
    let map = &named("map-model-width-schedule-kind-margin-linf-gd").svg;
    elements(map);
    // the lowest and the highest cell have the ends of the scale
    assert!(map.contains("fill=\"#440154\"") && map.contains("fill=\"#FDE725\""), "{map}");
    assert!(map.contains("fast &amp; free") && map.matches("<polygon").count() == 6 + 64);
    let over_steps = &named("margin-linf").svg;
    assert!(over_steps.contains("\ngd · width=16, kind=slow\n"), "settings by their last words: {over_steps}");
}

#[test]
fn chosen_figures_are_those_asked_for() {
    let record = swept();
    let analysis = analyse(&record);
    let ask = |columns: &[&str], axis: Option<&str>, size| {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        let axis = axis.map(|axis| axis.parse().unwrap());
        chosen_figures(&record, &analysis, &FigureRequest { columns, axis, size })
            .map(|figures| figures.into_iter().map(|figure| figure.name).collect::<Vec<_>>())
    };
    assert_eq!(ask(&["margin.linf"], Some("model.width"), None).unwrap(), ["against-model-width-margin-linf"]);
    assert_eq!(ask(&["log10_loss"], Some("loss"), None).unwrap(), ["loss-along-loss"]);
    let map = ask(&["margin.linf"], Some("schedule.kind,model.width"), None).unwrap();
    assert_eq!(map, ["map-model-width-schedule-kind-margin-linf-gd"]);
    let error = |answer: Result<Vec<String>, FigureError>| answer.unwrap_err().to_string();
    let text = error(ask(&["margin.l9"], None, None));
    assert!(text.contains("'margin.l9'; there are") && text.contains("margin.linf"), "{text}");
    assert!(error(ask(&[], Some("model.depth"), None)).contains("model.depth"));
    assert!(error(ask(&["margin.linf"], Some("steps"), Some((340, 100)))).contains("needs a height of"));
}

/// The text of a PDF, by the codes of its glyphs and its own map of them to characters.
fn text_of(pdf: &[u8]) -> (String, String) {
    use std::io::Read;
    let find = |from: usize, what: &[u8]| pdf[from..].windows(what.len()).position(|at| at == what).map(|at| from + at);
    // every entry of the table leads to its object
    let start = find(0, b"xref\n0 ").unwrap();
    let table = String::from_utf8_lossy(&pdf[start..]);
    let places: Vec<usize> =
        table.lines().skip(3).map_while(|line| line.strip_suffix(" 00000 n ")).map(|at| at.parse().unwrap()).collect();
    assert_eq!(places.len(), 10);
    for (number, place) in places.iter().enumerate() {
        assert!(pdf[*place..].starts_with(format!("{} 0 obj\n", number + 1).as_bytes()), "object {}", number + 1);
    }
    let stream = |number: usize| {
        let from = find(places[number - 1], b"stream\n").unwrap() + 7;
        let to = find(from, b"\nendstream").unwrap();
        let mut text = Vec::new();
        flate2::read::ZlibDecoder::new(&pdf[from..to]).read_to_end(&mut text).unwrap();
        text
    };
    assert_eq!(stream(8), typeface::FILE, "the typeface is inside");
    let (page, map) = (String::from_utf8(stream(4)).unwrap(), String::from_utf8(stream(9)).unwrap());
    let letters: std::collections::HashMap<&str, char> = map
        .lines()
        .filter_map(|line| line.strip_prefix('<')?.strip_suffix('>')?.split_once("> <"))
        .filter_map(|(code, letter)| Some((code, char::from_u32(u32::from_str_radix(letter, 16).ok()?)?)))
        .collect();
    let shown = page.lines().filter_map(|line| line.strip_suffix("> Tj")?.split_once('<'));
    let text = shown.map(|(_, codes)| {
        let letter = |at: usize| letters[&codes[at..at + 4]];
        (0..codes.len()).step_by(4).map(letter).collect::<String>() + "\n"
    });
    (text.collect(), page)
}

#[test]
fn a_pdf_is_sound_and_its_text_can_be_read() {
    for figure in drawn(&record()).iter().chain(&drawn(&swept())) {
        let pdf = figure.drawing.pdf();
        assert_eq!(pdf, figure.drawing.pdf());
        let (text, page) = text_of(&pdf);
        let words = figure.svg.split("<text").count() - 1;
        assert_eq!(page.matches("BT ").count(), words, "{}", figure.name);
        // a line or an area for each in the SVG
        assert_eq!(page.lines().filter(|line| *line == "S").count(), figure.svg.matches("<polyline").count());
        assert_eq!(page.lines().filter(|line| *line == "h f").count(), figure.svg.matches("<polygon").count());
        let expected = if figure.name.contains("linf") && !figure.name.contains("max") { "ℓ∞" } else { "" };
        assert!(text.contains(expected), "{}: {text}", figure.name);
    }
    let loss = text_of(&drawn(&record())[0].drawing.pdf()).0;
    for words in ["sign & <momentum>", "training loss", "steps", "−400"] {
        assert!(loss.contains(words), "{words}: {loss}");
    }
}

#[test]
fn pgf_is_balanced_and_has_every_shape() {
    for figure in drawn(&record()).iter().chain(&drawn(&swept())) {
        let pgf = figure.drawing.pgf();
        let bare = pgf.replace("\\\\", "").replace("\\{", "").replace("\\}", "");
        let depth = bare.chars().try_fold(0_i32, |depth, letter| match letter {
            '{' => Some(depth + 1),
            '}' => (depth > 0).then_some(depth - 1),
            _ => Some(depth),
        });
        assert_eq!(depth, Some(0), "{}", figure.name);
        assert_eq!(pgf.matches("\\pgftext[").count(), figure.svg.matches("<text").count());
        assert_eq!(pgf.matches("\\pgfusepath{stroke}").count(), figure.svg.matches("<polyline").count());
        assert_eq!(pgf.matches("\\pgfusepath{fill}").count(), figure.svg.matches("<polygon").count());
        assert!(bare.matches('$').count().is_multiple_of(2));
    }
    let loss = drawn(&record())[0].drawing.pgf();
    assert!(
        loss.contains(r"sign \& $<$momentum$>$")
            && loss.contains(r"\raisebox{3.6bp}{\fontsize{7bp}{7bp}\selectfont $-{}$400}"),
        "{loss}"
    );
}
