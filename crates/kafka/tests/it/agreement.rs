//! The types accept exactly the inbound bodies that the schemas accept.

use daegi_domain::{
    CohortRange, Draw, DrawBeacon, Drawn, ItemChanged, ItemId, LineClosed, LineOpened, Number,
    OrderClosed, Reveal, Topic, Topics,
};
use daegi_kafka::{Event, Record, schema};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

/// A change of a valid body.
#[derive(Debug, Clone)]
enum Mutation {
    Without(Index),
    With(Index, Value),
    More(String, Value),
    /// The values in an array, without their names.
    Unnamed,
    Replace(Value),
}

fn valid_body(topic: Topic) -> Value {
    match topic {
        Topic::ItemChanged => json!({
            "itemId": 42, "itemName": "Friday 8 pm", "remainCount": 3, "version": 7,
            "waitingQueueEnabled": true, "isWaitingQueueTargetItem": true,
            "occurredAt": "2026-01-01T00:00:00Z"
        }),
        _ => json!({
            "eventId": "order-1", "itemId": "concert", "userId": "kim@example.com", "token": "t",
            "outcome": "COMPLETED", "occurredAt": "2026-01-01T00:00:00Z"
        }),
    }
}

fn number() -> impl Strategy<Value = Value> {
    let edges = vec![
        json!(-1),
        json!(0),
        json!(-0.0),
        json!(1.0),
        json!(1.5),
        json!(1e3),
        json!(-1.0),
        json!(u32::MAX),
        json!(1_u64 << 32),
        json!(4_294_967_296.0),
        json!(u64::MAX),
        json!(18_446_744_073_709_551_616.0),
        json!(1e19),
        json!(1e300),
    ];
    prop_oneof![
        select(edges),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from)
    ]
}

fn text() -> impl Strategy<Value = Value> {
    let edges =
        ["", "a", "a b", "a\n", "~daegi.x", "~daegi", "kim@x", "\u{7f}", "\u{85}", "콘서트"];
    let edges = edges.map(ToOwned::to_owned).into_iter();
    let words =
        ["COMPLETED", "CANCELLED", "completed", "2026-01-01T00:00:00Z"].map(ToOwned::to_owned);
    let lengths = [64, 65, 128, 129, 200, 201].map(|length| "x".repeat(length));
    let known: Vec<String> = edges.chain(words).chain(lengths).collect();
    prop_oneof![select(known), any::<String>()].prop_map(Value::from)
}

fn value() -> impl Strategy<Value = Value> {
    let flag = select(vec![json!(null), json!(true), json!(false)]);
    let nested = select(vec![json!([]), json!(["a"]), json!({}), json!({ "COMPLETED": null })]);
    prop_oneof![2 => flag, 3 => number(), 4 => text(), 2 => nested]
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        1 => any::<Index>().prop_map(Mutation::Without),
        8 => (any::<Index>(), value()).prop_map(|(field, value)| Mutation::With(field, value)),
        2 => ("[a-zA-Z]{0,9}", value()).prop_map(|(field, value)| Mutation::More(field, value)),
        1 => Just(Mutation::Unnamed),
        1 => value().prop_map(Mutation::Replace),
    ]
}

fn mutated(mut body: Value, mutation: &Mutation) -> Value {
    let Some(fields) = body.as_object_mut().filter(|fields| !fields.is_empty()) else {
        return body;
    };
    let field = |index: &Index| fields.keys().nth(index.index(fields.len())).cloned().unwrap();
    match mutation {
        Mutation::Without(index) => drop(fields.remove(&field(index))),
        Mutation::With(index, value) => drop(fields.insert(field(index), value.clone())),
        Mutation::More(name, value) => drop(fields.insert(name.clone(), value.clone())),
        Mutation::Unnamed => body = fields.values().cloned().collect(),
        Mutation::Replace(value) => body = value.clone(),
    }
    body
}

fn agree<E: Event + DeserializeOwned>(mutations: &[Mutation]) -> Result<(), TestCaseError> {
    let body = mutations.iter().fold(valid_body(E::TOPIC), mutated).to_string();
    let (decoded, validated) =
        (schema::decode::<E>(body.as_bytes()), schema::validate::<E>(body.as_bytes()));
    let decoded = decoded.map(|_| ()).map_err(|error| error.to_string());
    prop_assert_eq!(decoded.is_ok(), validated.is_ok(), "{}: {:?}, {:?}", body, decoded, validated);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn an_item_change_decodes_exactly_if_it_conforms(
        mutations in prop::collection::vec(mutation(), 0..3),
    ) {
        agree::<ItemChanged>(&mutations)?;
    }

    #[test]
    fn an_order_decodes_exactly_if_it_conforms(
        mutations in prop::collection::vec(mutation(), 0..3),
    ) {
        agree::<OrderClosed>(&mutations)?;
    }
}

#[test]
fn outbound_events_are_also_checked_for_formats() {
    let mut event = json!({
        "eventId": "01890a5d-ac96-774b-bcce-b302099a8057", "itemId": "concert", "userId": "kim",
        "token": "t", "number": 7, "activatedAt": "2026-01-01T00:00:00Z",
        "expiresAt": "2026-01-01T00:10:00Z", "unknown": "field"
    });
    let accepted = |event: &Value| {
        schema::validate::<daegi_domain::TokenActivated>(event.to_string().as_bytes())
    };
    assert_eq!(accepted(&event), Ok(()));
    event["expiresAt"] = json!("soon");
    assert!(accepted(&event).unwrap_err().contains("date-time"));
}

#[test]
fn the_events_of_a_line_conform_to_their_schemas() {
    let item = ItemId::parse("concert").unwrap();
    let draw = Draw {
        reveal: Reveal([1; 32]),
        cohort: Some(CohortRange { first: Number(1), size: 3 }),
        root: Some([2; 32]),
        beacon: Some(DrawBeacon { round: 7, signature: Some([4; 48]) }),
        drawn: Some(Drawn { root: [2; 32], beacon: Some([5; 32]), seed: [3; 32] }),
    };
    for draw in [None, Some(&draw)] {
        let opened = LineOpened::new(item.clone(), Uuid::nil(), 1, draw);
        Record::from_event(&opened, &Topics::default()).unwrap();
    }
    let closed = LineClosed::new(item, Uuid::nil(), 1);
    Record::from_event(&closed, &Topics::default()).unwrap();
}
