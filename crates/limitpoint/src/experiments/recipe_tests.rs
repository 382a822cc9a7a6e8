//! Laws of experiment files: what merges, what is short for what, what is refused and how.

use std::path::PathBuf;
use std::time::Instant;

use proptest::prelude::*;
use serde_json::Value;

use super::{Plan, Recipe, RecipeError, RecipeSource, builtins, plan, schema};
use crate::data::DataSpec;
use crate::losses::LossSpec;
use crate::models::{Activation, Initialiser, ModelSpec};
use crate::norms::NormSpec;
use crate::optimisers::OptimiserSpec;
use crate::potentials::PotentialSpec;
use crate::schedules::ScheduleSpec;

/// The least a file can say.
const LEAST: &str = "loss = 'logistic'\nmodel = 'linear'\ndata = 'gaussians'\noptimiser = 'sign'\nstop.steps = 9\n";

fn try_plan(text: &str, overrides: &[&str]) -> Result<Plan, RecipeError> {
    plan(&RecipeSource::from_text("x.toml", text), &overrides.iter().map(|o| (*o).to_string()).collect::<Vec<_>>())
}

fn one(text: &str, overrides: &[&str]) -> Recipe {
    let plan = try_plan(text, overrides).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((plan.points.len(), plan.swept.len()), (1, 0));
    assert_eq!(plan.points[0].recipe, plan.base);
    plan.base
}

fn with(overrides: &[&str]) -> Recipe {
    one(LEAST, overrides)
}

fn digits(overrides: &[&str]) -> Recipe {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_string()).collect();
    plan(&RecipeSource::find("digits").unwrap(), &overrides).unwrap_or_else(|error| panic!("{error}")).base
}

fn refused(text: &str, overrides: &[&str], parts: &[&str]) {
    let message = try_plan(text, overrides).expect_err(&format!("{text} {overrides:?}")).to_string();
    for part in parts {
        assert!(message.contains(part), "{overrides:?} says\n{message}\nwithout\n{part}");
    }
}

/// A folder of its own for the files of one test.
fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("limitpoint-recipes-{}-{test}", std::process::id()));
    std::fs::create_dir_all(folder.join("below")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    folder
}

fn from_file(path: PathBuf) -> Result<Recipe, RecipeError> {
    plan(&RecipeSource::find(&path.display().to_string())?, &[]).map(|plan| plan.base)
}

#[test]
fn every_builtin_is_a_recipe_that_teaches() {
    for (name, _) in builtins() {
        let plan = plan(&RecipeSource::find(name).unwrap(), &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((plan.name.as_str(), plan.points.len()), (*name, 1));
        assert!(plan.base.description.len() > 200 && !plan.base.title.is_empty(), "{name}");
        assert_eq!(one(&plan.base.to_toml().unwrap(), &[]), plan.base, "{name}");
    }
    let showcase = plan(&RecipeSource::find("showcase").unwrap(), &[]).unwrap().base;
    let names: Vec<&String> = showcase.optimisers.keys().collect();
    let expected = ["gradient", "sign", "coordinate", "spectral", "adam", "muon", "mirror-hyperbolic", "mirror-p"];
    assert_eq!(names, expected);
    assert_eq!(showcase.data, digits(&[]).data);
}

#[test]
fn texts_stand_for_choices_everywhere() {
    let recipe = one(
        "loss = 'huber(delta=0.5)'\nmodel = 'network(widths=[3, 4], activation=relu-power(power=2))'\n\
         data = { regression = {} }\nschedule = 'constant(rate=0.2)'\ninitialiser = 'normal(deviation=0.1)'\n\
         batching = 'mini(size=5)'\nstop = { steps = 1e5, certificate = { norm = 'lp:4/3', gap = 0.1 } }\n\
         [optimisers]\na = { steepest = { norm = 'l4/3' } }\nb = { mirror = { potential = 'hyperbolic:0.1' } }\n\
         c = 'switch(first=sign, second=adam(beta2=0.9), when=steps(count=3))'\n\
         [observe]\nnorms = ['lp:4/3', { lp = { p = 3 } }, 'max(*=2*l2)']\npotentials = ['smoothed:3,1']\n\
         [schedules]\na = 'polynomial(rate=1)'\n[flows]\nf = { steepest = { norm = 'l2' } }",
        &[],
    );
    let p = NormSpec::Lp { p: 4.0 / 3.0 };
    assert_eq!(recipe.loss, LossSpec::Huber { delta: 0.5 });
    assert_eq!(recipe.schedule, ScheduleSpec::Constant { rate: 0.2 });
    assert_eq!(recipe.initialiser, Initialiser::Normal { deviation: 0.1 });
    assert_eq!(recipe.optimisers["a"], OptimiserSpec::steepest(p.clone()));
    assert_eq!(recipe.optimisers["b"], OptimiserSpec::mirror(PotentialSpec::Hyperbolic { lambda: 0.1 }));
    assert!(matches!(&recipe.optimisers["c"], OptimiserSpec::Switch { second, .. }
        if **second == OptimiserSpec::Adam { beta1: 0.9, beta2: 0.9, epsilon: 1e-8 }));
    assert_eq!(recipe.observe.norms[0], p);
    assert_eq!(recipe.observe.potentials, [PotentialSpec::Smoothed { p: 3.0, lambda: 1.0 }]);
    assert_eq!(recipe.stop.steps, Some(100_000));
    assert!(matches!(&recipe.model, ModelSpec::Network { widths, activation: Activation::ReluPower { power: 2 }, .. }
        if *widths == [3, 4]));
    // a table without settings is its tag
    assert_eq!(
        one(&format!("{}\n[model.linear]", LEAST.replace("model = 'linear'", "")), &[]).model,
        ModelSpec::Linear
    );
}

#[test]
fn a_single_optimiser_gets_a_name() {
    for (text, name) in [
        ("'sign'", "sign"),
        ("'gd'", "gradient"),
        ("'adam'", "adam"),
        ("{ steepest = { norm = 'l2' } }", "gradient"),
        ("{ steepest = { norm = 'l1' } }", "coordinate"),
        ("{ steepest = { norm = 'spectral' } }", "spectral"),
        ("{ steepest = { norm = 'lp:3' } }", "steepest-l3"),
        ("{ mirror = { potential = 'entropy' } }", "mirror"),
    ] {
        let recipe = one(&LEAST.replace("'sign'", text), &[]);
        assert_eq!(recipe.optimisers.keys().collect::<Vec<_>>(), [name]);
    }
    refused(&format!("{LEAST}optimisers.a = 'adam'"), &[], &["x.toml:4:1", "either `optimiser` or `optimisers`"]);
}

#[test]
fn bases_merge_tables_and_replace_the_rest() {
    let child = "base = 'digits'\nobserve.norms = ['l2']\n[data.digits]\ncount = 50\n[model.network]\nwidths = [8]";
    let (base, recipe) = (digits(&[]), one(child, &[]));
    assert!(matches!(&recipe.data, DataSpec::Digits(d) if d.count == Some(50) && d.classes == Some([3, 8])));
    assert!(matches!(&recipe.model, ModelSpec::Network { widths, activation: Activation::ReluPower { power: 2 }, .. }
        if *widths == [8]));
    assert_eq!((recipe.observe.norms, recipe.stop), (vec![NormSpec::L2], base.stop));
    // another variant forgets the old one
    let recipe = one("base = 'digits'\n[model.diagonal]\n[data]\ngaussians = { count = 4 }", &[]);
    assert_eq!(recipe.model, ModelSpec::Diagonal { factors: 2 });
    assert!(matches!(recipe.data, DataSpec::Gaussians(g) if g.count == 4));
    // the same variant keeps what its text said
    let recipe = one("base = 'digits'\n[schedule.flow-resolved]\ngrow = 2.0", &[]);
    assert!(matches!(recipe.schedule, ScheduleSpec::FlowResolved { resolution: 0.1, grow: 2.0, .. }));
    // `optimisers` adds, `optimiser` replaces
    let names = |text: &str| one(text, &[]).optimisers.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names("base = 'digits'\noptimisers.s = 'sign'"), ["gradient", "s"]);
    assert_eq!(names("base = 'digits'\noptimiser = 'sign'"), ["sign"]);
}

#[test]
fn files_stand_on_files() {
    let files = [
        ("a.toml", "base = 'below/b.toml'\noptimiser = 'adam'"),
        ("below/b.toml", "base = '../c.toml'\n[schedules]\nsign = 'constant(rate=1)'\n[stop]\nsteps = 5"),
        ("c.toml", LEAST),
        ("round.toml", "base = 'round2.toml'"),
        ("round2.toml", "base = 'round.toml'"),
        ("missing.toml", "\nbase = 'nowhere.toml'"),
        ("typed.toml", "base = 'wrong.toml'\noptimiser = 'adam'"),
        ("wrong.toml", "base = 'c.toml'\n\n[data.gaussians]\n count = 'many'"),
    ];
    let folder = folder("bases", &files);
    let recipe = from_file(folder.join("a.toml")).unwrap();
    assert_eq!((recipe.stop.steps, recipe.optimisers.len()), (Some(5), 1));
    assert!(recipe.schedules.is_empty(), "a replaced optimiser takes its schedule along");
    assert_eq!(from_file(folder.join("below/b.toml")).unwrap().schedules.len(), 1);
    let message = |name: &str| from_file(folder.join(name)).unwrap_err().to_string();
    let round = message("round.toml");
    assert!(round.contains("circle") && round.matches("round.toml").count() == 2, "{round}");
    let missing = message("missing.toml");
    assert!(missing.contains("nowhere.toml") && missing.contains("missing.toml:2:8"), "{missing}");
    assert!(message("no.toml").contains("cannot read"));
    let typed = message("typed.toml");
    assert!(typed.contains("wrong.toml:4:10: 'data.gaussians.count' should be a whole number"), "{typed}");
    assert!(typed.ends_with(" count = 'many'\n           ^^^^^^"), "{typed}");
    std::fs::write(folder.join("d0.toml"), LEAST).unwrap();
    for i in 1..=17 {
        std::fs::write(folder.join(format!("d{i}.toml")), format!("base = 'd{}.toml'", i - 1)).unwrap();
    }
    assert!(from_file(folder.join("d16.toml")).is_ok());
    let deep = message("d17.toml");
    assert!(deep.contains("more than 16 bases"), "{deep}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn overrides_reach_through_tags_and_aliases() {
    assert_eq!(
        digits(&["optimiser.norm=spectral"]).optimisers["spectral"],
        OptimiserSpec::steepest(NormSpec::Spectral)
    );
    assert_eq!(digits(&["optimiser.norm=lp:4/3"]).optimisers.keys().collect::<Vec<_>>(), ["steepest-l4/3"]);
    assert_eq!(digits(&["seed=1,2,3"]).seeds, [1, 2, 3]);
    assert_eq!(digits(&["seed=5", "seeds=7..8", "seed=[1, 0]"]).seeds, [5, 7, 8, 1, 0]);
    assert_eq!(digits(&["stop.log10_loss=-50"]).stop.log10_loss, Some(-50.0));
    assert!(matches!(digits(&["data.count=200"]).data, DataSpec::Digits(d) if d.count == Some(200)));
    assert_eq!(digits(&["loss=logistic"]).loss, LossSpec::Logistic);
    assert_eq!(digits(&["schedule=constant(rate=0.1)"]).schedule, ScheduleSpec::Constant { rate: 0.1 });
    let model = digits(&["model.activation=relu", "model.width=64"]).model;
    assert!(matches!(model, ModelSpec::Network { widths, activation: Activation::Relu, .. } if widths == [64]));
    let model = digits(&["model.widths=[8, 9]", "model.activation=leaky-relu(slope=0.1)"]).model;
    assert!(matches!(model, ModelSpec::Network { widths, activation: Activation::LeakyRelu { slope: 0.1 }, .. }
        if widths == [8, 9]));
    assert_eq!(digits(&["init.scale=2"]).initialiser, Initialiser::HeNormal { scale: 2.0 });
    assert_eq!(digits(&["init=uniform(scale=1)"]).initialiser, Initialiser::Uniform { scale: 1.0, fan_in: true });
    assert_eq!(digits(&["observe.norms=[l1, lp:3]"]).observe.norms, [NormSpec::L1, NormSpec::Lp { p: 3.0 }]);
    assert_eq!(digits(&["title=Hello, 1..3 worlds"]).title, "Hello, 1..3 worlds");
    assert_eq!(digits(&["title=\"quoted\""]).title, "quoted");
    // defaults count as written
    assert!(matches!(
        with(&["schedule.resolution=0.2"]).schedule,
        ScheduleSpec::FlowResolved { resolution: 0.2, initial: 0.1, .. }
    ));
    assert_eq!(with(&["tolerance.relative=1e-6"]).tolerance.absolute, 1e-12);
    assert_eq!(with(&["observe.spacing.per_decade=7"]).observe.norms.len(), 3);
    let showcase = RecipeSource::find("showcase").unwrap();
    let change = |text: &str| plan(&showcase, &[text.to_string()]);
    let recipe = change("optimisers.adam.beta2=0.99").unwrap().base;
    assert_eq!(recipe.optimisers["adam"], OptimiserSpec::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8 });
    assert_eq!(recipe.optimisers.len(), 8);
    assert_eq!(change("optimisers.new=lion").unwrap().base.optimisers.len(), 9);
    assert_eq!(change("optimiser=lion").unwrap().base.optimisers.keys().collect::<Vec<_>>(), ["lion"]);
    let message = change("optimiser.norm=l1").unwrap_err().to_string();
    for part in ["gradient, sign, coordinate", "optimisers.gradient.norm=", "optimiser=NAME", "\n  ^^^^^^^^^"] {
        assert!(message.contains(part), "{message}");
    }
    // a key that another file could not give: the problem without a file's help
    let bare = "data = 'digits'\nloss = 'logistic'";
    assert_eq!(one(bare, &["model=linear", "optimiser=adam", "stop.steps=3"]).model, ModelSpec::Linear);
}

#[test]
fn a_list_of_layers_keeps_its_commas_and_several_are_a_sweep() {
    let shell = "model=conv 4 3x3, pool 2, dense";
    let layers = |plan: &Plan| plan.points.iter().map(|point| point.recipe.model.clone()).collect::<Vec<_>>();
    let one = ModelSpec::from_words("conv 4 3x3, pool 2, dense").unwrap().unwrap();
    assert_eq!(layers(&try_plan("base = 'digits'", &[shell]).unwrap()), std::slice::from_ref(&one));
    let swept = try_plan("base = 'digits'", &[&format!("{shell}, relu 8, conv 2 3x3, dense 5, dense")]).unwrap();
    let other = ModelSpec::from_words("conv 2 3x3, dense 5, dense").unwrap().unwrap();
    assert_eq!(layers(&swept), [one.clone(), ModelSpec::relu(&[8]), other]);
    let named = try_plan("base = 'digits'", &[shell, "model.layers=conv 4 3x3, pool 2, dense"]).unwrap();
    assert_eq!(layers(&named), [one]);
    refused("base = 'digits'", &["model=conv 4 3x3, pool two, dense"], &["pool two"]);
}

#[test]
fn commas_and_ranges_sweep() {
    let plan =
        try_plan(LEAST, &["data.count=10,20", "optimiser=sign,adam", "seed=1..2", "data.margin=1..4*2"]).unwrap();
    assert_eq!(plan.points.len(), 12);
    assert_eq!(plan.swept, ["data.count", "optimiser", "data.margin"]);
    let settings: Vec<String> = plan.points[4].settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(settings, ["data.count=10", "optimiser=adam", "data.margin=2"]);
    assert!(plan.points.iter().all(|point| point.recipe.seeds == [1, 2]));
    assert!(matches!(&plan.points[11].recipe.data, DataSpec::Gaussians(g) if g.count == 20 && g.margin == 4.0));
    let plan = try_plan(LEAST, &["model=network(widths=[4]),linear", "loss=huber(delta=1),logistic"]).unwrap();
    assert_eq!(plan.points.len(), 4);
    // texts with commas of their own
    let mirror = LEAST.replace("'sign'", "{ mirror = { potential = 'entropy' } }");
    let plan = try_plan(&mirror, &["optimiser.potential=smoothed:3,1,hyperbolic:0.1,quadratic:1,2"]).unwrap();
    let values: Vec<&str> = plan.points.iter().map(|point| point.settings[0].1.as_str()).collect();
    assert_eq!(values, ["smoothed:3,1", "hyperbolic:0.1", "quadratic:1,2"]);
    refused(LEAST, &["data.count=1..10000", "data.dimension=1..11"], &["110000 combinations", "at most 100000"]);
    refused(LEAST, &["data.count=3..2"], &["is empty", "^^^^"]);
    refused(LEAST, &["data.count=1,2", "data.count=5"], &["swept by an earlier override"]);
    refused(LEAST, &["data.count=1,,2"], &["between two commas"]);
    assert!(matches!(with(&["data.count=3", "data.count=4"]).data, DataSpec::Gaussians(g) if g.count == 4));
}

#[test]
fn refusals_point_at_the_place_and_suggest() {
    refused("lss = 1\n", &[], &["x.toml:1:1: unknown key 'lss'; did you mean 'loss'?", "allowed:", "\n  ^^^"]);
    refused(&LEAST.replace("steps", "stpes"), &[], &["x.toml:5:6", "in 'stop'", "did you mean 'steps'?"]);
    refused(&LEAST.replace("'sign'", "'sgin'"), &[], &["x.toml:4:13", "'sgin' is not known", "did you mean 'sign'?"]);
    refused(&LEAST.replace("'linear'", "{ newtork = {} }"), &[], &["x.toml:2:11", "did you mean 'network'?"]);
    refused(&LEAST.replace("'linear'", "{ network = {} }"), &[], &["'widths' is missing in 'model.network'"]);
    refused(&LEAST.replace("'linear'", "'network'"), &[], &["x.toml:2:9", "'widths' is missing"]);
    refused(
        &LEAST.replace("'linear'", "{}"),
        &[],
        &["exactly one of linear, network, image, diagonal", "an empty table"],
    );
    refused(&LEAST.replace("'linear'", "{ linear = 3 }"), &[], &["linear has no settings"]);
    refused(&LEAST.replace("'linear'", "4"), &[], &["'model' should be exactly one of", "but is 4"]);
    refused(&LEAST.replace("= 9", "= 'nine'"), &[], &["x.toml:5:14", "whole number", "the text \"nine\""]);
    refused(&LEAST.replace("= 9", "= 9.5"), &[], &["whole number", "9.5"]);
    refused(&LEAST.replace("= 9", "= -1"), &[], &["whole number, 0 or more", "-1"]);
    refused(&LEAST.replace("= 9", "= 1979-05-27"), &[], &["the date"]);
    refused(&LEAST.replace("= 9", "= 99999999999999999999"), &[], &["below 2^64"]);
    refused(&LEAST.replace("= 9", "= 1e999"), &[], &["beyond the largest double"]);
    refused("loss = \n", &[], &["x.toml:1:", "this is not TOML"]);
    refused("base = 'digts'", &[], &["x.toml:1:8", "did you mean 'digits'?"]);
    refused("base = 3", &[], &["'base' should be the name"]);
    refused("stop.steps = 1", &[], &["'loss' is missing"]);
    refused(&format!("{LEAST}schedule = 'constant(rat=1)'"), &[], &["unknown key 'rat' in 'constant'", "'rate'"]);
    refused(&format!("{LEAST}initialiser = 'normal(dev=1)'"), &[], &["unknown key 'dev'", "deviation"]);
    refused(&format!("{LEAST}observe.norms = ['l2', 'l']"), &[], &["x.toml:6:24"]);
    let unknown = RecipeSource::find("showcas").unwrap_err().to_string();
    assert!(unknown.contains("did you mean 'showcase'?") && unknown.contains(".toml"), "{unknown}");
    assert!(matches!(RecipeSource::find("no/such.toml"), Err(RecipeError::File { .. })));
}

#[test]
fn refused_overrides_show_a_caret() {
    refused(LEAST, &["optimiser.nrom=l1"], &["unknown key 'nrom'", "did you mean 'norm'?", "\n            ^^^^"]);
    refused(LEAST, &["lss=logistic"], &["did you mean 'loss'?", "\n  lss=logistic\n  ^^^"]);
    refused(LEAST, &["loss=logstic"], &["did you mean 'logistic'?", "\n       ^^^^^^^"]);
    refused(LEAST, &["model.widths=[3]"], &["'model' is 'linear', which has no 'widths'", "model.network.widths="]);
    refused(LEAST, &["data.count=x"], &["'data.gaussians.count' should be a whole number", "\n             ^"]);
    refused(LEAST, &["data.count"], &["the '=' is missing"]);
    refused(LEAST, &["=3"], &["a part of the key is empty"]);
    refused(LEAST, &["data..count=3"], &["a part of the key is empty"]);
    refused(LEAST, &["data.count="], &["the value is missing"]);
    refused(LEAST, &["seeds.0=3"], &["'seeds' has no parts"]);
    refused(LEAST, &["base=digits"], &["the base cannot be overridden"]);
    refused(LEAST, &["optimisers.adma.beta2=1"], &["unknown key 'adma' in 'optimisers'", "allowed: sign"]);
    refused(LEAST, &["observe.norms=l1"], &["'observe.norms' should be a list"]);
    refused(LEAST, &["loss={huber={delta=x}}"], &["no TOML table"]);
    refused(LEAST, &["seed=-1"], &["'seeds' should be a whole number"]);
}

#[test]
fn recipes_that_make_no_sense_are_refused() {
    refused(&LEAST.replace("optimiser = 'sign'", ""), &[], &["no optimiser and no flow"]);
    refused(LEAST, &["schedules.sing=constant(rate=1)"], &["'sing'", "did you mean 'sign'?"]);
    refused(LEAST, &["seeds=[]"], &["list of seeds is empty"]);
    refused(LEAST, &["seed=3,4,3"], &["the seed 3 is given twice"]);
    refused(&LEAST.replace("stop.steps = 9", ""), &[], &["no rule would ever end a run", "stop.log10_loss"]);
    let certificate = "stop.certificate={norm='spectral', gap=0.1}";
    refused(LEAST, &[certificate], &["'spectral', which is not observed", "l1, l2, linf"]);
    assert!(with(&[certificate, "observe.norms=[spectral]"]).stop.certificate.is_some());
    refused(LEAST, &["flows.sign={steepest={norm='l2'}}"], &["optimiser and to a flow"]);
    // a flow alone is enough
    let flow = LEAST.replace("optimiser = 'sign'", "flows.f = { steepest = { norm = 'l2' } }");
    assert_eq!(one(&flow, &[]).flows.len(), 1);
}

#[test]
fn large_seeds_and_odd_numbers_survive_toml() {
    let recipe = with(&["seed=18446744073709551615", "data.margin=1e-300", "stop.log10_loss=-1e300", "title=a\"b\nc"]);
    assert_eq!(recipe.seeds, [u64::MAX]);
    assert_eq!(one(&recipe.to_toml().unwrap(), &[]), recipe);
}

/// As much of JSON schema as ours uses.
fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let kind = |name: &str| match name {
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    };
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let types = match schema.get("type") {
        Some(Value::String(name)) => kind(name),
        Some(Value::Array(names)) => names.iter().any(|name| kind(name.as_str().unwrap())),
        _ => true,
    };
    let parts = match value {
        Value::Object(table) => {
            let known = |key: &String| schema.get("properties").and_then(|fields| fields.get(key));
            let other = schema.get("additionalProperties");
            list("required").is_none_or(|keys| keys.iter().all(|key| table.contains_key(key.as_str().unwrap())))
                && table.iter().all(|(key, value)| match (known(key), other) {
                    (Some(field), _) => valid(root, field, value),
                    (None, Some(Value::Bool(allowed))) => *allowed,
                    (None, Some(field)) => valid(root, field, value),
                    (None, None) => true,
                })
        }
        Value::Array(items) => {
            schema.get("items").is_none_or(|item| items.iter().all(|value| valid(root, item, value)))
        }
        _ => true,
    };
    let target = schema.get("$ref").map(|path| root.pointer(&path.as_str().unwrap()[1..]).unwrap());
    let count = |options: &Vec<Value>| options.iter().filter(|option| valid(root, option, value)).count();
    types
        && parts
        && target.is_none_or(|target| valid(root, target, value))
        && schema.get("const").is_none_or(|word| word == value)
        && list("enum").is_none_or(|words| words.contains(value))
        && list("oneOf").is_none_or(|options| count(options) == 1)
        && list("anyOf").is_none_or(|options| count(options) > 0)
}

fn fits_schema(text: &str) -> bool {
    let schema = schema();
    valid(&schema, &schema, &serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap())
}

#[test]
fn the_schema_describes_files_and_their_short_forms() {
    for (name, text) in builtins() {
        assert!(fits_schema(text), "{name}");
        let resolved = plan(&RecipeSource::find(name).unwrap(), &[]).unwrap().base.to_toml().unwrap();
        assert!(fits_schema(&resolved), "{name}\n{resolved}");
    }
    assert!(fits_schema(LEAST));
    assert!(fits_schema("base = 'digits'\n[model.network]\nactivation = 'relu'\n[observe]\nnorms = ['lp:4/3']"));
    assert!(fits_schema("base = 'digits'\n[model.linear]"));
    for wrong in [
        "loss = 'logistic'",
        "base = 3",
        "base = 'digits'\nlos = 'logistic'",
        "base = 'digits'\nstop.steps = 'x'",
        "base = 'digits'\nmodel = { network = {}, diagonal = {} }",
        "base = 'digits'\n[data.digits]\ncuont = 3",
    ] {
        assert!(!fits_schema(wrong), "{wrong}");
    }
    let schema = schema();
    let description = schema["$defs"]["NormSpec"]["description"].as_str().unwrap();
    assert_eq!(description, "Which norm.");
    assert!(schema["properties"]["stop"]["description"].is_string());
}

/// Overrides that are right on the built-in "digits", with numbers of all sizes.
fn changes() -> impl Strategy<Value = String> {
    let number = any::<f64>().prop_filter("finite", |x| x.is_finite());
    prop_oneof![
        number.clone().prop_map(|x| format!("init.scale={x:e}")),
        number.clone().prop_map(|x| format!("schedule.resolution={x:?}")),
        number.clone().prop_map(|x| format!("stop.log10_loss={x:e}")),
        number.clone().prop_map(|x| format!("optimiser.norm=lp:{x:?}")),
        number.clone().prop_map(|x| format!("loss=huber(delta={x:e})")),
        number.prop_map(|x| format!("optimisers.m=mirror(potential=hyperbolic:{x:?})")),
        any::<u64>().prop_map(|seed| format!("seed={seed}")),
        any::<u64>().prop_map(|seed| format!("data.seed={seed}")),
        any::<u32>().prop_map(|width| format!("model.width={width}")),
        "[a-zA-Z0-9 .\"'\\\\äß\n\t]{0,20}".prop_map(|title| format!("title={}", Value::String(title))),
        Just("data={circle-teacher={}}".to_string()),
        Just("model=linear".to_string()),
        Just("batching=mini(size=3)".to_string()),
        Just("optimiser=muon(polar=newton-schulz(iterations=5))".to_string()),
        Just("observe.potentials=[entropy, smoothed:3,1]".to_string()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn resolved_recipes_read_back_as_they_are(overrides in prop::collection::vec(changes(), 0..5)) {
        let source = RecipeSource::find("digits").unwrap();
        // some combinations are refused, such as a width for a linear model
        if let Ok(plan) = plan(&source, &overrides) {
            for point in &plan.points {
                let text = point.recipe.to_toml().unwrap();
                prop_assert_eq!(one(&text, &[]), point.recipe.clone(), "{}", text);
            }
        }
    }

    #[test]
    fn mutilated_files_are_answered_and_never_hang(
        at in 0usize..2000, length in 0usize..40, patch in prop::collection::vec(any::<u8>(), 0..20), which in 0..builtins().len(),
    ) {
        let mut bytes = builtins()[which].1.as_bytes().to_vec();
        let start = at.min(bytes.len());
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, patch);
        let began = Instant::now();
        match try_plan(&String::from_utf8_lossy(&bytes), &[]) {
            Ok(plan) => prop_assert!(!plan.points.is_empty()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        prop_assert!(began.elapsed().as_secs() < 5);
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,60}") {
        let _ = try_plan(&String::from_utf8_lossy(&bytes), &[]).map_err(|error| error.to_string());
        let _ = try_plan(LEAST, &[&text]).map_err(|error| error.to_string());
    }

    #[test]
    fn any_override_is_answered_quickly(
        key in "(seed|model|optimiser|optimisers|data|observe|stop|schedule|init|loss|title)(\\.[a-z_0-9]{1,8}){0,3}",
        value in "[-0-9a-z.,*+(){}\\[\\]=:'\"e/ ]{0,24}",
    ) {
        let began = Instant::now();
        let _ = try_plan(LEAST, &[&format!("{key}={value}")]).map_err(|error| error.to_string());
        prop_assert!(began.elapsed().as_secs() < 10, "{}={}", key, value);
    }

    #[test]
    fn ranges_give_what_they_promise(first in -50i64..50, count in 1i64..40, step in 1i64..9) {
        let last = first + (count - 1) * step;
        let plan = try_plan(LEAST, &[&format!("stop.log10_time={first}..{last}+{step}")]).unwrap();
        let values: Vec<f64> = plan.points.iter().filter_map(|point| point.recipe.stop.log10_time).collect();
        let expected: Vec<f64> = (0..count).map(|i| (first + i * step) as f64).collect();
        prop_assert_eq!(values, expected);
    }
}

#[test]
fn deep_nesting_is_refused_without_harm() {
    let nested = format!("{}sign{}", "switch(first=".repeat(5000), ")".repeat(5000));
    refused(LEAST, &[&format!("optimiser={nested}")], &["within each other"]);
    assert!(try_plan(&format!("{LEAST}x = {}1{}", "[".repeat(9999), "]".repeat(9999)), &[]).is_err());
    assert!(try_plan(&format!("{LEAST}{} = 1", vec!["a"; 9999].join(".")), &[]).is_err());
    assert!(try_plan(LEAST, &[&format!("{}=1", vec!["a"; 9999].join("."))]).is_err());
    assert!(try_plan(LEAST, &[&format!("data.count={}", "[".repeat(9999))]).is_err());
    assert!(try_plan(LEAST, &[&format!("title={}", ",".repeat(99_999))]).is_ok());
}
