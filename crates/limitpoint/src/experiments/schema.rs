//! The JSON schema of an experiment file, for editors and other programs.

use serde_json::{Map, Value, json};

use super::shape::{Form, Shape};

/// The schema of an experiment file: every key of a recipe with its description, and what files may write short.
///
/// A file with a base says only what differs, so keys are required at the top of a file without a base, and nowhere
/// else.
///
/// ```
/// let schema = limitpoint::experiments::schema();
/// assert!(schema["properties"]["optimiser"].is_object());
/// ```
pub fn schema() -> Value {
    let mut schema = Shape::schema().clone();
    let required = schema.get("required").cloned().unwrap_or_else(|| json!([]));
    relax(&mut schema);
    let Some(root) = schema.as_object_mut() else { return schema };
    root.insert("title".into(), json!("limitpoint experiment"));
    root.insert("anyOf".into(), json!([{ "required": ["base"] }, { "required": required }]));
    if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
        let base =
            "What this file starts from: a built-in experiment or the path of another file, relative to this one.";
        properties.insert("base".into(), json!({ "description": base, "type": "string" }));
        let optimiser = "Short for `optimisers` with a single one, which is named after what it is.";
        properties.insert("optimiser".into(), json!({ "description": optimiser, "$ref": "#/$defs/OptimiserSpec" }));
    }
    if let Some(definitions) = root.get_mut("$defs").and_then(Value::as_object_mut) {
        for (name, definition) in definitions {
            if let Some((text, words)) = text_form(name) {
                accept_text(definition, &text, &words);
            }
        }
    }
    schema
}

/// How a choice is written as text, and its tags without settings; `None` for what is no choice, or has no settings.
fn text_form(name: &str) -> Option<(String, Vec<&'static str>)> {
    let shape = Shape::of(name).filter(|shape| matches!(shape.form(), Form::Choice))?;
    let variants = shape.variants();
    let tag = variants.iter().find(|(_, settings)| settings.is_some())?.0;
    let words = variants.iter().filter(|(_, settings)| settings.is_none()).map(|(word, _)| *word).collect();
    let text = match name {
        "NormSpec" => "A norm as text: l2, lp:4/3, max(layer1.weight=spectral, *=l2).".into(),
        "PotentialSpec" => "A potential as text: entropy, hyperbolic:0.1, smoothed:3,1.".into(),
        "ScheduleSpec" => "A schedule as text: constant(rate=0.1), flow-resolved(resolution=0.1).".into(),
        "LossSpec" => "A loss as text: logistic, huber(delta=0.5).".into(),
        "OptimiserSpec" => "An optimiser as text: gradient, sign, coordinate, spectral, adam(beta2=0.99).".into(),
        _ => format!("As text: the name, with settings in brackets, as in {tag}(setting=value)."),
    };
    Some((text, words))
}

fn accept_text(definition: &mut Value, description: &str, words: &[&str]) {
    let Some(object) = definition.as_object_mut() else { return };
    let mut choice = Map::new();
    for key in ["oneOf", "enum", "type"] {
        choice.extend(object.remove(key).map(|value| (key.to_owned(), value)));
    }
    let mut options = vec![Value::Object(choice)];
    // `[model.linear]` is accepted for "linear"
    options.extend(words.iter().map(|word| {
        let empty = json!({ "type": "object", "additionalProperties": false });
        json!({ "type": "object", "properties": { *word: empty }, "required": [word], "additionalProperties": false })
    }));
    options.push(json!({ "type": "string", "description": description }));
    object.insert("anyOf".into(), Value::Array(options));
}

/// Keeps the first paragraph of descriptions, and requires only the tags of choices.
fn relax(value: &mut Value) {
    let Some(object) = value.as_object_mut() else {
        if let Some(items) = value.as_array_mut() {
            items.iter_mut().for_each(relax);
        }
        return;
    };
    if let Some(Value::String(text)) = object.get_mut("description") {
        let paragraph = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        *text = paragraph;
    }
    object.remove("required");
    for (key, inner) in object.iter_mut() {
        match (key.as_str(), inner) {
            ("default", _) => {}
            ("properties" | "$defs", Value::Object(parts)) => parts.values_mut().for_each(relax),
            ("oneOf", Value::Array(options)) => {
                for option in options {
                    let tag = option.get("required").cloned();
                    relax(option);
                    if let (Some(tag), Some(option)) = (tag, option.as_object_mut()) {
                        option.insert("required".into(), tag);
                    }
                }
            }
            (_, inner) => relax(inner),
        }
    }
}
