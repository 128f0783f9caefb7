//! The part of the Redis protocol that fake and proxy need: reading commands, writing a bulk
//! string.

use std::io::{self, ErrorKind};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Returns the next command as its words, or `None` if the client has disconnected. Commands are
/// arrays of bulk strings: `*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n`.
pub(super) async fn read_command<R>(reader: &mut R) -> io::Result<Option<Vec<String>>>
where
    R: AsyncBufRead + Unpin,
{
    let Some(count) = read_length(reader, '*').await? else {
        return Ok(None);
    };
    let mut words = Vec::new();
    for _ in 0..count {
        let length = read_length(reader, '$').await?.ok_or(ErrorKind::UnexpectedEof)?;
        words.push(read_word(reader, length).await?);
    }
    Ok(Some(words))
}

/// Returns the bytes of the next command, or `None` if the client has disconnected.
pub(crate) async fn read_frame<R>(reader: &mut R) -> io::Result<Option<Vec<u8>>>
where
    R: AsyncBufRead + Unpin,
{
    let Some(count) = read_length(reader, '*').await? else {
        return Ok(None);
    };
    let mut frame = format!("*{count}\r\n").into_bytes();
    for _ in 0..count {
        let length = read_length(reader, '$').await?.ok_or(ErrorKind::UnexpectedEof)?;
        frame.extend(format!("${length}\r\n").into_bytes());
        let from = frame.len();
        frame.resize(from + length + "\r\n".len(), 0);
        reader.read_exact(&mut frame[from..]).await?;
    }
    Ok(Some(frame))
}

/// Encodes a bulk string.
pub(super) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

async fn read_length<R>(reader: &mut R, mark: char) -> io::Result<Option<usize>>
where
    R: AsyncBufRead + Unpin,
{
    let mut line = String::new();
    if reader.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let length = line.trim_end().strip_prefix(mark).and_then(|text| text.parse().ok());
    length.map(Some).ok_or_else(|| ErrorKind::InvalidData.into())
}

async fn read_word<R>(reader: &mut R, length: usize) -> io::Result<String>
where
    R: AsyncBufRead + Unpin,
{
    let mut word = vec![0; length + "\r\n".len()];
    reader.read_exact(&mut word).await?;
    word.truncate(length);
    Ok(String::from_utf8_lossy(&word).into_owned())
}
