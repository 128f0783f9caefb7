use daegi_domain::VisitCounts;

/// Adds visits to those of a minute or an hour, in the order of their labels.
pub(in crate::memory) fn add_visits(stored: &mut VisitCounts, visits: &VisitCounts) {
    visits.iter().for_each(|(label, count)| stored.add_bounded(label, count));
}
