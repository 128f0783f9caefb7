//! Statistical tests of the order over many draws. The seeds are fixed, so that the tests are deterministic.

use super::{Cohort, commitment, draw_seed};
use crate::{ItemId, Number};

/// The orders of `draws` draws of a cohort: for each index, its rank from 0. The reveals are the SHA-256 of a counter.
fn orders(draws: u64, size: u64) -> impl Iterator<Item = Vec<usize>> {
    let item = ItemId::parse("concert").unwrap();
    (0..draws).map(move |draw| {
        let mut counter = [0; 32];
        counter[..8].copy_from_slice(&draw.to_be_bytes());
        let seed = draw_seed(&item, &commitment(&counter), &[7; 32], None);
        let cohort = Cohort::new(Number(1), size, seed);
        let rank = |number| cohort.cohort_rank(Number(number)).unwrap() - 1;
        (1..=size).map(|number| usize::try_from(rank(number)).unwrap()).collect()
    })
}

/// Returns the chi-square statistic of counts that are expected to be equal.
fn chi_square(counts: &[u32]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}

/// Asserts that a statistic is below the mean of its distribution plus six standard deviations.
fn assert_no_bias(statistic: f64, degrees_of_freedom: f64, what: &str) {
    let limit = degrees_of_freedom + 6.0 * (2.0 * degrees_of_freedom).sqrt();
    println!("{what}: chi-square {statistic:.1}, limit {limit:.1}");
    assert!(statistic < limit, "{what}: chi-square {statistic:.1} exceeds {limit:.1}");
}

#[test]
fn every_index_has_every_rank_equally_often() {
    for size in [2, 3, 5, 16, 17, 20] {
        let cells = usize::try_from(size).unwrap();
        let mut counts = vec![0_u32; cells * cells];
        for order in orders(4_000, size) {
            order.iter().enumerate().for_each(|(index, rank)| counts[index * cells + rank] += 1);
        }
        // Rows and columns have fixed sums: (size − 1)² degrees of freedom, scaled by (size − 1) / size.
        let free = (size - 1) as f64;
        let statistic = chi_square(&counts) * free / size as f64;
        assert_no_bias(statistic, free * free, &format!("index and rank, size {size}"));
    }
}

#[test]
fn every_order_of_a_small_cohort_is_equally_likely() {
    for (size, permutations) in [(2, 2), (3, 6), (4, 24)] {
        let mut counts = std::collections::BTreeMap::<_, u32>::new();
        orders(12_000, size).for_each(|order| *counts.entry(order).or_default() += 1);
        assert_eq!(counts.len(), permutations, "size {size}");
        let counts: Vec<u32> = counts.into_values().collect();
        let degrees_of_freedom = (permutations - 1) as f64;
        assert_no_bias(chi_square(&counts), degrees_of_freedom, &format!("orders, size {size}"));
    }
}

/// A balanced Feistel network of halves of two and more bits is an even permutation. So for 5 of 16 values,
/// an odd order is as likely as 1 + 5 · 4 / (16 · 15), an even one as 1 − 5 · 4 / (16 · 15).
#[test]
fn orders_of_a_larger_cohort_deviate_only_by_the_parity_of_the_network() {
    const DRAWS: u32 = 24_000;
    let mut counts = std::collections::BTreeMap::<_, u32>::new();
    orders(DRAWS.into(), 5).for_each(|order| *counts.entry(order).or_default() += 1);
    assert_eq!(counts.len(), 120);
    let statistic = counts.iter().map(|(order, count)| {
        let inversions = order
            .iter()
            .enumerate()
            .flat_map(|(index, rank)| order[index..].iter().filter(move |later| *later < rank));
        let parity = if inversions.count() % 2 == 1 { 1.0 } else { -1.0 };
        let expected = f64::from(DRAWS) / 120.0 * (1.0 + parity * 20.0 / 240.0);
        (f64::from(*count) - expected).powi(2) / expected
    });
    assert_no_bias(statistic.sum(), 119.0, "orders, size 5");
}

#[test]
fn neighbours_in_the_line_are_not_neighbours_in_the_draw() {
    // The distance d = 1 … 15 of the ranks of two neighbours has 16 − d ordered pairs of 240, twice.
    let mut counts = [0_u32; 15];
    for order in orders(4_000, 16) {
        counts[order[0].abs_diff(order[1]) - 1] += 1;
        counts[order[8].abs_diff(order[9]) - 1] += 1;
    }
    let statistic = counts.iter().zip(1_u32..).map(|(count, distance)| {
        let expected = 8_000.0 * 2.0 * f64::from(16 - distance) / 240.0;
        (f64::from(*count) - expected).powi(2) / expected
    });
    assert_no_bias(statistic.sum(), 14.0, "distance of neighbours");
}
