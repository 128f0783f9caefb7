//! Counts the bytes that arrive on a connection before hyper receives them.
//!
//! hyper reads a head into a buffer that grows to its maximum, and its only timeout covers both
//! waiting for a request and receiving one. Counting the bytes below hyper distinguishes the two:
//! the first byte after a complete request begins the next head.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::budget::{Budget, FREE_BYTES, Reservation};
use super::limits::Refused;

/// Maximum bytes of one read. hyper enlarges its buffer when a read fills it, so shorter reads keep
/// the buffer at its first size (8 KiB). A read that completes a request can also contain the
/// beginning of the next one; those bytes are not counted and fit into that buffer.
const MAX_READ: usize = FREE_BYTES;

thread_local! {
    /// Receives the bytes of a read before they are copied to hyper's buffer. A read of limited
    /// length directly into hyper's buffer would have to zero that part of it, which would take
    /// another page of memory for every idle connection.
    static SCRATCH: RefCell<[u8; MAX_READ]> = const { RefCell::new([0; MAX_READ]) };
}

/// The bytes of one connection's requests. Shared by its stream, its idle timer and its handler.
#[derive(Debug)]
pub(super) struct Intake(Mutex<State>);

#[derive(Debug)]
struct State {
    expected: Expected,
    /// Bytes of the head that is being received.
    head: usize,
    /// Whether the last read ended with an empty line, as a complete head does.
    ended_with_empty_line: bool,
    /// Never shrinks while the connection is open, because hyper's buffer does not.
    held: Reservation,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Head,
    /// `buffer_body` charges it to a separate reservation.
    Body,
    /// The connection was upgraded and carries no requests any more.
    Messages,
}

/// A TCP stream that counts what it reads.
#[derive(Debug)]
pub(super) struct CountedStream {
    stream: TcpStream,
    intake: Arc<Intake>,
}

impl Intake {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        let held = Reservation::new(budget);
        let expected = Expected::Head;
        Self(Mutex::new(State { expected, head: 0, ended_with_empty_line: false, held }))
    }

    /// Returns whether a part of the next head has arrived.
    pub(super) fn has_begun(&self) -> bool {
        let state = self.state();
        state.expected == Expected::Head && state.head > 0
    }

    /// Records that hyper waits for a head: no more bytes of an earlier body follow.
    pub(super) fn expect_head(&self) {
        let mut state = self.state();
        if state.expected == Expected::Body {
            state.expect_head(0);
        }
    }

    /// Records that hyper has parsed a head.
    pub(super) fn head_complete(&self, has_body: bool) {
        let mut state = self.state();
        if has_body {
            state.expected = Expected::Body;
        } else {
            // Bytes after the empty line are the beginning of the next head.
            let rest = usize::from(!state.ended_with_empty_line);
            state.expect_head(rest);
        }
    }

    /// Records that the body has arrived completely.
    pub(super) fn body_complete(&self) {
        self.state().expect_head(0);
    }

    /// Records that the connection was upgraded and carries no more requests.
    pub(super) fn upgraded(&self) {
        self.state().expected = Expected::Messages;
    }

    /// Returns an empty reservation for the body of a request. The caller holds it until the
    /// response.
    pub(super) fn reserve_body(&self) -> Reservation {
        self.state().held.another()
    }

    #[cfg(test)]
    pub(super) fn begin_head(&self) {
        self.received(b"G").expect("one byte is free");
    }

    fn received(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if state.expected != Expected::Head || bytes.is_empty() {
            return Ok(());
        }
        state.head += bytes.len();
        state.ended_with_empty_line = bytes.ends_with(b"\n\r\n") || bytes.ends_with(b"\n\n");
        let head = state.head;
        state.held.cover(head).map_err(|error| {
            Refused::Head.count();
            io::Error::other(error)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn expect_head(&mut self, received: usize) {
        self.expected = Expected::Head;
        self.head = received;
    }
}

impl CountedStream {
    pub(super) fn new(stream: TcpStream, intake: Arc<Intake>) -> Self {
        Self { stream, intake }
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = buffer.remaining().min(MAX_READ);
        SCRATCH.with_borrow_mut(|scratch| {
            let mut read = ReadBuf::new(&mut scratch[..length]);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
            self.intake.received(read.filled())?;
            buffer.put_slice(read.filled());
            Poll::Ready(Ok(()))
        })
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

    #[test]
    fn the_first_byte_after_a_complete_request_begins_a_head() {
        let intake = Intake::new(Budget::new(0));
        assert!(!intake.has_begun());
        intake.received(&REQUEST[..1]).unwrap();
        assert!(intake.has_begun());
        intake.received(&REQUEST[1..]).unwrap();
        intake.head_complete(false);
        assert!(!intake.has_begun());
        let with_rest = [REQUEST, b"GET"].concat();
        intake.received(&with_rest).unwrap();
        intake.head_complete(false);
        assert!(intake.has_begun(), "three bytes of the next head");
    }

    #[test]
    fn a_body_is_no_head_and_ends_with_it_or_with_the_next_wait() {
        let intake = Intake::new(Budget::new(0));
        for end in [Intake::body_complete, Intake::expect_head] {
            intake.received(REQUEST).unwrap();
            intake.head_complete(true);
            intake.received(&[b'x'; 3 * FREE_BYTES]).unwrap();
            assert!(!intake.has_begun());
            end(&intake);
            assert!(!intake.has_begun());
        }
        intake.upgraded();
        intake.received(&[b'x'; 3 * FREE_BYTES]).unwrap();
        assert!(!intake.has_begun());
    }

    #[test]
    fn a_large_head_is_charged_until_the_connection_ends() {
        let budget = Budget::new(2 * FREE_BYTES);
        let (one, other) = (Intake::new(budget.clone()), Intake::new(budget));
        one.received(&[b'x'; 3 * FREE_BYTES]).unwrap();
        one.head_complete(false);
        other.received(&[b'x'; FREE_BYTES]).unwrap();
        assert!(other.received(b"x").is_err());
        drop(one);
        other.received(b"x").unwrap();
    }
}
