//! Unsigned integers in seven bits per byte, lowest first (LEB128), for packed counters.

/// Bytes of an integer at most.
const MAX_BYTES: u32 = 10;

/// Appends an integer.
pub(crate) fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends a signed integer. Small absolute values take few bytes.
pub(crate) fn push_signed(bytes: &mut Vec<u8>, value: i64) {
    push(bytes, ((value << 1) ^ (value >> 63)) as u64);
}

/// Removes the first integer. Returns `None` if there is none.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for position in 0..MAX_BYTES {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Removes the first signed integer.
pub(crate) fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let value = take(bytes)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_are_read_as_they_were_written(value in any::<u64>(), signed in any::<i64>()) {
            let mut bytes = Vec::new();
            push(&mut bytes, value);
            push_signed(&mut bytes, signed);
            let mut rest = &*bytes;
            prop_assert_eq!(take(&mut rest), Some(value));
            prop_assert_eq!(take_signed(&mut rest), Some(signed));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn an_incomplete_integer_is_none() {
        assert_eq!(take(&mut &[][..]), None);
        assert_eq!(take(&mut &[0x80][..]), None);
        assert_eq!(take(&mut &[0xff; 12][..]), None);
    }
}
