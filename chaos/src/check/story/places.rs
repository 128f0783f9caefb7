//! One place per person.

use super::super::Rule;
use super::Story;
use super::losses::lost;

#[test]
fn a_second_place_without_the_end_of_the_first_is_one_too_many() {
    let story = Story::new().joined("kim", 1, 10).activated("kim", 1, 1).at(1_000);
    let story = story.closed("kim", 1, "LEFT").at(2_000).joined("kim", 2, 2_000);
    assert_eq!(story.activated("kim", 2, 1).at(3_000).ended(0, 1).breaks(), []);
    let story = Story::new().joined("kim", 1, 10).joined("kim", 2, 20);
    let story = story.activated("kim", 1, 1).activated("kim", 2, 1).ended(0, 2);
    assert_eq!(story.breaks(), [Rule::Places]);
}

#[test]
fn two_places_side_by_side_are_one_too_many_though_the_first_ends_later() {
    let story = Story::new().joined("kim", 1, 10).joined("kim", 2, 1_000);
    let story = story.activated("kim", 1, 1).at(1_500).closed("kim", 1, "LEFT").at(2_000);
    assert_eq!(story.activated("kim", 2, 1).at(3_000).ended(0, 1).breaks(), [Rule::Places]);
}

#[test]
fn after_a_loss_a_newcomer_without_the_token_has_two_places_until_it_is_shown() {
    let newcomer = |story: Story| {
        let story = story.joined("lee", 9, 36_000).polled("park", 3, "WAITING", 36_000);
        let story = story.polled("lee", 2, "WAITING", 38_000);
        story.activated("lee", 2, 5).at(40_000).activated("park", 3, 5).at(41_000)
    };
    let story = newcomer(lost()).closed("lee", 9, "REPLACED").at(38_003).ended(0, 2);
    assert_eq!(story.breaks(), []);
    let story = newcomer(lost()).closed("lee", 9, "REPLACED").at(42_000).ended(0, 2);
    assert_eq!(story.breaks(), [Rule::Places]);
}
