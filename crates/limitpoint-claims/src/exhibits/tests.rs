use std::collections::BTreeSet;

use super::*;
use crate::{Lab, Scale};

#[test]
fn every_exhibit_is_there_once_and_its_runs_can_be_planned() {
    let all = exhibits();
    let ids: BTreeSet<&str> = all.iter().map(|exhibit| exhibit.id).collect();
    assert_eq!((all.len(), ids.len()), (40, 40), "{ids:?}");
    let count = |paper: &str, kind: &str| ids.iter().filter(|id| id.starts_with(paper) && id.contains(kind)).count();
    let counts = ["A", "B", "C", "D"].map(|paper| [count(paper, "fig"), count(paper, "tab")]);
    assert_eq!(counts, [[6, 0], [1, 0], [14, 10], [8, 1]]);
    for exhibit in &all {
        for set in exhibit.sets() {
            assert!(RunSet::find(set).is_some(), "{}: {set}", exhibit.id);
        }
        if let MadeOf::Claims(claims) = exhibit.made_of {
            assert!(claims.iter().all(|id| crate::find_claims(id).is_ok()), "{}", exhibit.id);
        }
    }
}

#[test]
fn every_set_has_as_many_runs_as_the_paper() {
    let runs = |name: &str| RunSet::find(name).unwrap().plan().unwrap().tasks().len();
    // three starts, five rules, twenty seeds
    assert_eq!(runs("a-teacher"), 300);
    // gradient descent and four λ of two potentials, two rates, three seeds
    assert_eq!(runs("c-vgg16"), 54);
    assert_eq!([runs("d-cnn"), runs("d-cnn-biased"), runs("d-cnn-constant")], [10, 1, 2]);
    for set in RUN_SETS {
        let estimate = Estimate::of(&set.plan().unwrap());
        assert!(
            estimate.runs > 0 && estimate.multiply_adds > 0.0 && estimate.bytes > 0.0,
            "{}: {estimate:?}",
            set.name
        );
        assert!(estimate.hours(1e11) < estimate.hours(1e10), "{}", set.name);
    }
}

#[test]
fn a_record_of_nothing_says_so() {
    let exhibit = find_exhibits("C.tab2").unwrap().remove(0);
    let nowhere = std::env::temp_dir().join("limitpoint-no-such-folder");
    let material = Material::gather(exhibit.sets(), &nowhere, None, Default::default()).unwrap();
    let record = ExhibitRecord::of(&exhibit, &material, &Lab::new(Scale::Paper)).unwrap().unwrap();
    assert_eq!((record.extent, record.sets[0].finished, record.sets[0].planned), (Extent::NotRun, 0, 30));
    assert!(record.reading.rows.iter().all(|row| row.ours.is_none() && row.ratio().is_none()));
    assert!(record.page().contains("not run") && index(&[record]).contains("| [C.tab2](C.tab2.md) |"));
}
