use serde_json::Value;

use super::{escape, fields, items, prose, row, table, text};

/// Renders all schemas, each with an anchor.
pub(super) fn schemas(document: &Value) -> String {
    let all = fields(&document["components"]["schemas"]);
    all.map(|(name, schema)| {
        let about = prose(&schema["description"]);
        let name = escape(name);
        let shape = shape_of(schema);
        format!("<article id=\"schema-{name}\"><h3>{name}</h3><p>{about}</p>{shape}</article>")
    })
    .collect()
}

/// Renders the fields of an object, the values of an enumeration, or the type of another schema.
fn shape_of(schema: &Value) -> String {
    let properties: String =
        fields(&schema["properties"]).map(|(name, field)| property(schema, name, field)).collect();
    let values: String = items(&schema["oneOf"])
        .map(|value| {
            row(
                &format!("<code>{}</code>", text(&value["const"])),
                "",
                &prose(&value["description"]),
            )
        })
        .collect();
    if !properties.is_empty() {
        table(["Field", "Type", ""], &properties)
    } else if !values.is_empty() {
        table(["Value", "", ""], &values)
    } else {
        format!("<p>{}</p>", name_of(schema))
    }
}

fn property(schema: &Value, name: &str, field: &Value) -> String {
    let required = items(&schema["required"]).any(|required| required == name);
    let optional = if required { "" } else { " <small>optional</small>" };
    let name = format!("<code>{}</code>{optional}", escape(name));
    row(&name, &name_of(field), &prose(&field["description"]))
}

/// Returns a short name of a schema, with a link if it is a component.
pub(super) fn name_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = escape(reference.rsplit('/').next().unwrap_or(reference));
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(name_of).collect::<Vec<_>>().join(" or ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        kind => text(kind),
    };
    kind + &limits(schema)
}

fn limits(schema: &Value) -> String {
    let range = |low: &str, high: &str, unit: &str| {
        let (low, high) = (schema[low].as_u64(), schema[high].as_u64());
        high.map(|high| format!(", {} to {high}{unit}", low.unwrap_or(0))).unwrap_or_default()
    };
    let pattern = schema["pattern"].as_str();
    let pattern = pattern.map(|pattern| format!(", <code>{}</code>", escape(pattern)));
    range("minimum", "maximum", "")
        + &range("minLength", "maxLength", " characters")
        + &pattern.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_have_readable_names() {
        assert_eq!(name_of(&json!({ "type": ["string", "null"] })), "string or null");
        assert_eq!(
            name_of(
                &json!({ "anyOf": [{ "$ref": "#/components/schemas/Eta" }, { "type": "null" }] })
            ),
            "<a href=\"#schema-Eta\">Eta</a> or null"
        );
        assert_eq!(
            name_of(&json!({ "type": "integer", "minimum": 0, "maximum": 9 })),
            "integer, 0 to 9"
        );
    }

    #[test]
    fn text_of_a_schema_is_escaped() {
        assert!(!name_of(&json!({ "type": "<script>" })).contains("<script>"));
    }
}
