use std::fmt;

use super::{SpanId, TraceId};

/// Length of a `traceparent` of version 00. Later versions begin with the same fields.
const LEN: usize = 55;

/// The trace context that one service passes to the next: the W3C `traceparent` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span of the caller.
    pub span: SpanId,
    /// Whether spans of this trace are exported.
    pub sampled: bool,
}

impl TraceContext {
    /// Parses a `traceparent`. Returns `None` for an invalid one, as the specification requires.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_at_checked(LEN)?;
        let mut fields = head.split('-');
        let mut field = |digits| hex(fields.next()?, digits);
        let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
        let fits = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let (trace, span) = (TraceId(trace), SpanId(u64::try_from(span).ok()?));
        let context = Self { trace, span, sampled: flags & 1 == 1 };
        (fits && trace.0 != 0 && span.0 != 0).then_some(context)
    }
}

/// Parses a hexadecimal number with exactly `digits` lower-case digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    let is_hex = text.len() == digits && text.bytes().all(is_digit);
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn a_context_survives_formatting_and_parsing() {
        let context = TraceContext::parse(KNOWN).unwrap();
        assert_eq!(context.trace, TraceId(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c));
        assert_eq!((context.span, context.sampled), (SpanId(0x00f0_67aa_0ba9_02b7), true));
        assert_eq!(context.to_string(), KNOWN);
        let unsampled = TraceContext { sampled: false, ..context };
        assert_eq!(unsampled.to_string(), KNOWN.replace("-01", "-00"));
        assert_eq!(TraceContext::parse(&unsampled.to_string()), Some(unsampled));
    }

    #[test]
    fn other_flags_and_later_versions_are_read() {
        assert!(TraceContext::parse(&KNOWN.replace("-01", "-03")).unwrap().sampled);
        assert!(!TraceContext::parse(&KNOWN.replace("-01", "-02")).unwrap().sampled);
        let later = format!("{}-more", KNOWN.replacen("00", "01", 1));
        assert_eq!(TraceContext::parse(&later), TraceContext::parse(KNOWN));
    }

    #[test]
    fn invalid_contexts_are_ignored() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
        for bad in [
            String::new(),
            KNOWN.to_uppercase(),
            KNOWN.replacen("00", "ff", 1),
            format!("{KNOWN}-more"),
            KNOWN.replace('-', "_"),
            KNOWN.replace(trace, &"0".repeat(32)),
            KNOWN.replace(span, &"0".repeat(16)),
            KNOWN.replace("00f067", "+0f067"),
            KNOWN.replacen("00-", "0-0", 1),
            format!("{}é", &KNOWN[..54]),
        ] {
            assert_eq!(TraceContext::parse(&bad), None, "{bad}");
        }
    }
}
