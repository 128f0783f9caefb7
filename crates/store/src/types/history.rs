/// What is appended to the log of a line's hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourAppend<'a> {
    /// The hour, counted since 1970.
    pub hour: u64,
    /// The length that the stored log has before, in bytes; 0 if there is none.
    pub length: usize,
    /// What is appended: records, after a header if there is no log.
    pub bytes: &'a [u8],
}
