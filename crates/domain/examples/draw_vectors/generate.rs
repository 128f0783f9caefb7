//! The contents of `sdk/vectors/draw.json`. All inputs are fixed.

use daegi_domain::draw::{CohortTree, DEPARTED_LEAF, DrawRecord, commitment, draw_seed, leaf};
use daegi_domain::{Cohort, ItemId, Number, Ticket, TicketKeys, UserId};
use serde_json::{Map, Value, json};

/// The first number of the cohorts.
const FIRST: Number = Number(114_854_400_000_065);

/// A round of drand's quicknet, its signature, and the randomness that is the SHA-256 of the signature.
const BEACON_ROUND: u64 = 657_413;
const BEACON_SIGNATURE: &str = "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be\
    41076862b98fad56e91a6b85b89cd97b";
const BEACON: &str = "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587";

/// Returns the vectors.
pub(crate) fn vectors() -> Value {
    json!({
        "permutations": permutations(),
        "trees": trees(),
        "commitments": commitments(),
        "seeds": seeds(),
        "records": records(),
    })
}

/// Returns the text of the file: one line for each case.
pub(crate) fn text(vectors: &Value) -> String {
    let parts = vectors.as_object().unwrap().iter().map(|(name, cases)| {
        let cases: Vec<_> = cases.as_array().unwrap().iter().map(Value::to_string).collect();
        format!("\"{name}\": [\n{}\n]", cases.join(",\n"))
    });
    format!("{{\n{}\n}}\n", parts.collect::<Vec<_>>().join(",\n"))
}

fn item() -> ItemId {
    ItemId::parse("concert").unwrap()
}

fn permutations() -> Vec<Value> {
    let seed = commitment(b"the seed of the permutations....");
    let spots = |size: u64| vec![0, 1, 2, 3, 7, size / 3, size / 2, size - 2, size - 1];
    [1, 2, 3, 4, 5, 7, 16, 17, 100, 1000, 1_000_000, 1 << 48]
        .map(|size| {
            let indices = if size <= 100 { (0..size).collect() } else { spots(size) };
            let cohort = Cohort::new(Number(0), size, seed);
            let ranks: Vec<_> =
                indices.iter().map(|index| json!([index, cohort.rank(Number(*index)).0])).collect();
            json!({ "seed": hex::encode(seed), "size": size, "indexAndRank": ranks })
        })
        .to_vec()
}

/// Leaf `i` is the SHA-256 of the text `token i`; every third one, from index 2, has departed.
fn trees() -> Vec<Value> {
    [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 100]
        .map(|size: usize| {
            let leaves: Vec<_> = (0..size)
                .map(|i| if i % 3 == 2 { DEPARTED_LEAF } else { leaf(&format!("token {i}")) })
                .collect();
            let tree = CohortTree::new(leaves.clone());
            let mut indices = vec![0, size / 2, size.saturating_sub(2), size.saturating_sub(1)];
            indices.dedup();
            let paths: Vec<_> = indices
                .into_iter()
                .filter_map(|index| {
                    let path: Vec<_> = tree.path(index)?.into_iter().map(hex::encode).collect();
                    Some(json!({ "index": index, "path": path }))
                })
                .collect();
            let leaves: Vec<_> = leaves.into_iter().map(hex::encode).collect();
            json!({ "leaves": leaves, "root": hex::encode(tree.root()), "paths": paths })
        })
        .to_vec()
}

fn commitments() -> Vec<Value> {
    [[0; 32], [0xff; 32], reveal()]
        .map(|reveal| {
            json!({ "reveal": hex::encode(reveal), "commitment": hex::encode(commitment(&reveal)) })
        })
        .to_vec()
}

fn seeds() -> Vec<Value> {
    let root = leaf("a root");
    [("concert", None), ("concert", Some(beacon())), ("a.b~c-D_9", None)]
        .map(|(item, beacon)| {
            let id = ItemId::parse(item).unwrap();
            let seed = draw_seed(&id, &reveal(), &root, beacon.as_ref());
            json!({
                "itemId": item, "reveal": hex::encode(reveal()), "cohortRoot": hex::encode(root),
                "beacon": beacon.map(hex::encode), "seed": hex::encode(seed),
            })
        })
        .to_vec()
}

fn reveal() -> [u8; 32] {
    commitment(b"the reveal of the test vectors..")
}

fn beacon() -> [u8; 32] {
    let mut beacon = [0; 32];
    hex::decode_to_slice(BEACON, &mut beacon).unwrap();
    beacon
}

fn token(number: Number) -> String {
    let keys: TicketKeys = "3:000102030405060708090a0b0c0d0e0f".parse().unwrap();
    let user = UserId::parse(&format!("user-{}", number.0 % 1000)).unwrap();
    keys.token(&Ticket::new(item(), user, number))
}

/// Returns the record of a draw of `size` numbers with the ticket at `index`. Every seventh number, from index 3,
/// has departed.
fn drawn(size: u64, index: u64, beacon: Option<[u8; 32]>) -> DrawRecord {
    let leaf_of = |index| match index % 7 {
        3 => DEPARTED_LEAF,
        _ => leaf(&token(Number(FIRST.0 + index))),
    };
    let tree = CohortTree::new((0..size).map(leaf_of).collect());
    let record = DrawRecord::drawn(item(), reveal(), (FIRST, size), tree.root(), beacon);
    match tree.path(usize::try_from(index).unwrap()) {
        Some(path) => record.with_ticket(Number(FIRST.0 + index), leaf_of(index), &path),
        None => record,
    }
}

fn records() -> Vec<Value> {
    let plain = || serde_json::to_value(drawn(20, 5, None)).unwrap();
    let with_beacon = || {
        let mut record = serde_json::to_value(drawn(20, 19, Some(beacon()))).unwrap();
        record["beaconRound"] = BEACON_ROUND.into();
        record["beaconSignature"] = BEACON_SIGNATURE.into();
        record
    };
    let committed = || {
        let record = DrawRecord::committed(item(), commitment(&reveal()));
        serde_json::to_value(record).unwrap()
    };
    let nth = |index: u64| token(Number(FIRST.0 + index));
    let other_lane = || nth(5).replace("-8030-", "-8530-");
    let mut cases = vec![
        case("committed", committed(), None),
        case("drawn, without a token", without(plain(), "ticket"), None),
        case("drawn, ticket without its token", plain(), None),
        case("drawn, with a token", plain(), Some(nth(5))),
        case("drawn with a beacon", with_beacon(), Some(nth(19))),
        case("drawn, cohort of one", json!(drawn(1, 0, None)), Some(nth(0))),
        case("drawn, empty cohort", json!(drawn(0, 0, None)), None),
        case("drawn, cohort of 1000", json!(drawn(1000, 998, None)), Some(nth(998))),
        case("drawn, token after the cohort", without(plain(), "ticket"), Some(nth(20))),
        case("drawn, token before the cohort", without(plain(), "ticket"), Some(token(Number(1)))),
        case("drawn, token of another lane", without(plain(), "ticket"), Some(other_lane())),
        case("altered: lane of the token", plain(), Some(other_lane())),
        case(
            "altered: token in upper case",
            without(plain(), "ticket"),
            Some(nth(20).to_uppercase().replace("CONCERT", "concert")),
        ),
        case("altered: another token", plain(), Some(nth(6))),
        case("altered: token of another item", plain(), Some(nth(5).replace("concert", "theatre"))),
        case("altered: not a token", plain(), Some("kim-concert".to_owned())),
        case("altered: no proof for the token", without(plain(), "ticket"), Some(nth(5))),
        case("altered: departed ticket", json!(drawn(20, 10, None)), Some(nth(10))),
        case("altered: no reveal", with(plain(), "/reveal", Value::Null), None),
        case(
            "altered: committed with a reveal",
            with(committed(), "/reveal", plain()["reveal"].clone()),
            None,
        ),
        case(
            "altered: announced round unused",
            with(plain(), "/beaconRound", BEACON_ROUND.into()),
            None,
        ),
        case("altered: signature without round", without(with_beacon(), "beaconRound"), None),
        case("altered: too many numbers", with(plain(), "/cohortSize", (1_u64 << 48).into()), None),
        case("altered: version", with(plain(), "/version", 2.into()), None),
        case("altered: item", with(plain(), "/itemId", "theatre".into()), Some(nth(5))),
        case("altered: size", with(plain(), "/cohortSize", 40.into()), Some(nth(5))),
        case("altered: first", with(plain(), "/cohortFirst", (FIRST.0 + 1).into()), Some(nth(5))),
        case(
            "altered: number",
            with(plain(), "/ticket/number", (FIRST.0 + 6).into()),
            Some(nth(5)),
        ),
        case("altered: index", with(plain(), "/ticket/index", 4.into()), Some(nth(5))),
        case("altered: index beyond", with(plain(), "/ticket/index", 20.into()), Some(nth(5))),
        case("altered: rank", with(plain(), "/ticket/rank", 21.into()), Some(nth(5))),
        case("altered: no path", with(plain(), "/ticket/path", json!([])), Some(nth(5))),
    ];
    let one_digit = [
        "commitment",
        "reveal",
        "cohortRoot",
        "seed",
        "ticket/leaf",
        "ticket/path/0",
        "ticket/path/4",
    ];
    for field in one_digit {
        let record = flip_digit(plain(), &format!("/{field}"));
        cases.push(case(&format!("altered: digit of {field}"), record, Some(nth(5))));
    }
    for field in ["beacon", "beaconSignature"] {
        let record = flip_digit(with_beacon(), &format!("/{field}"));
        cases.push(case(&format!("altered: digit of {field}"), record, Some(nth(19))));
    }
    cases
}

/// Returns a record with a token and the checks in order.
fn case(name: &str, record: Value, token: Option<String>) -> Value {
    let parsed: DrawRecord = serde_json::from_value(record.clone()).unwrap();
    let checks: Vec<_> = parsed
        .check(token.as_deref())
        .into_iter()
        .map(|check| json!({ "name": check.name, "ok": check.ok }))
        .collect();
    let mut case = Map::new();
    case.insert("name".into(), name.into());
    case.insert("token".into(), token.into());
    case.insert("checks".into(), checks.into());
    case.insert("record".into(), record);
    case.into()
}

fn with(mut record: Value, field: &str, value: Value) -> Value {
    match record.pointer_mut(field) {
        Some(old) => *old = value,
        None => record[&field[1..]] = value,
    }
    record
}

fn without(mut record: Value, field: &str) -> Value {
    record.as_object_mut().unwrap().remove(field);
    record
}

/// Changes the last digit of a hexadecimal field.
fn flip_digit(mut record: Value, field: &str) -> Value {
    let old = record.pointer(field).unwrap().as_str().unwrap().to_owned();
    let (head, last) = old.split_at(old.len() - 1);
    let digit = u8::from_str_radix(last, 16).unwrap() ^ 1;
    *record.pointer_mut(field).unwrap() = format!("{head}{digit:x}").into();
    record
}
