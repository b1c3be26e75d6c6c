//! What a process wants to execute, read from its memory: a path, and its arguments.

use std::io;

use rustix::process::Pid;

use super::ExecCall;

/// The longest path that the kernel takes.
const MAX_PATH: usize = 4096;
/// More arguments than this are not read; nor are more bytes of them.
const MAX_ARGUMENTS: usize = 4096;
const MAX_BYTES: usize = 1 << 20;
/// How much of an argument is read with the others.
const FIRST_READ: usize = 256;
/// How many arguments are read at once.
const AT_ONCE: usize = 64;
const PAGE: u64 = 4096;
const NUMBER: usize = size_of::<u64>();

/// The arguments of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The arguments, the program's own name first.
    pub argv: Vec<String>,
    /// Whether there are more arguments than were read.
    pub cut: bool,
}

/// The path of the program, as it was given.
///
/// # Errors
/// Memory that cannot be read: the pointer leads nowhere, or the process does not let itself be looked at.
pub fn path(call: &ExecCall) -> io::Result<Vec<u8>> {
    let at = call.arguments[usize::from(call.at)];
    Ok(string(call.pid, at, MAX_PATH)?.ok_or(io::ErrorKind::InvalidInput)?)
}

/// The arguments of the program.
///
/// # Errors
/// As [`path`].
pub fn arguments(call: &ExecCall) -> io::Result<Arguments> {
    let (argv, cut) = list(call.pid, call.arguments[1 + usize::from(call.at)])?;
    Ok(Arguments { argv, cut })
}

fn list(pid: Pid, at: u64) -> io::Result<(Vec<String>, bool)> {
    let mut argv = Vec::new();
    let (mut at, mut bytes) = (at, 0);
    if at == 0 {
        return Ok((argv, false));
    }
    while argv.len() < MAX_ARGUMENTS && bytes < MAX_BYTES {
        let (places, ended) = pointers(pid, at)?;
        for text in strings(pid, &places, MAX_BYTES - bytes)? {
            let Some(text) = text else { return Ok((argv, true)) };
            bytes += text.len();
            argv.push(String::from_utf8_lossy(&text).into_owned());
        }
        if ended {
            return Ok((argv, false));
        }
        at += (places.len() * NUMBER) as u64;
    }
    Ok((argv, true))
}

/// Some pointers of a list that ends with a null pointer, and whether it ends there.
fn pointers(pid: Pid, at: u64) -> io::Result<(Vec<u64>, bool)> {
    let to_page_end = usize::try_from(PAGE - at % PAGE).unwrap_or(NUMBER);
    // A pointer may lie across two pages.
    let len = (to_page_end / NUMBER).clamp(1, AT_ONCE) * NUMBER;
    let mut buffer = [0_u8; AT_ONCE * NUMBER];
    let read = read(pid, &[(at, len)], &mut buffer)?;
    if read < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (numbers, _) = buffer[..len].as_chunks::<NUMBER>();
    let all: Vec<u64> = numbers.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
    let end = all.iter().position(|place| *place == 0);
    Ok((all[..end.unwrap_or(all.len())].to_vec(), end.is_some()))
}

/// The strings at some places: none for one that is longer than may be read.
fn strings(pid: Pid, places: &[u64], most: usize) -> io::Result<Vec<Option<Vec<u8>>>> {
    let first = |place: &u64| (*place, usize::try_from(PAGE - place % PAGE).unwrap_or(1).min(FIRST_READ));
    let pieces: Vec<(u64, usize)> = places.iter().map(first).collect();
    let mut buffer = vec![0_u8; pieces.iter().map(|(_, len)| len).sum()];
    let got = if pieces.is_empty() { 0 } else { read(pid, &pieces, &mut buffer)? };
    let mut begin = 0;
    let mut all = Vec::new();
    for (place, len) in pieces {
        let piece = &buffer[begin..begin + len];
        let whole = (begin + len <= got).then(|| piece.iter().position(|byte| *byte == 0)).flatten();
        all.push(match whole {
            Some(end) => Some(piece[..end].to_vec()),
            None => string(pid, place, most)?,
        });
        begin += len;
    }
    Ok(all)
}

/// The string at a place; none if it is longer than may be read.
fn string(pid: Pid, mut at: u64, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let mut buffer = [0_u8; PAGE as usize];
    while text.len() <= most {
        let len = usize::try_from(PAGE - at % PAGE).unwrap_or(1);
        // Most are short.
        let len = if text.is_empty() { len.min(FIRST_READ) } else { len };
        let got = read(pid, &[(at, len)], &mut buffer)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = buffer[..got].iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&buffer[..end]);
            return Ok(Some(text));
        }
        text.extend_from_slice(&buffer[..got]);
        at += got as u64;
    }
    Ok(None)
}

/// Reads pieces of a process's memory, one behind the other; says how much was read.
fn read(pid: Pid, pieces: &[(u64, usize)], buffer: &mut [u8]) -> io::Result<usize> {
    let total = pieces.iter().map(|(_, len)| len).sum::<usize>().min(buffer.len());
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: total };
    let remote: Vec<libc::iovec> = pieces
        .iter()
        .map(|(at, len)| libc::iovec { iov_base: *at as *mut libc::c_void, iov_len: *len })
        .collect();
    // SAFETY: the kernel writes at most `total` bytes into our buffer; the other side is only read.
    #[expect(unsafe_code, reason = "process_vm_readv has no safe wrapper")]
    let read = unsafe {
        libc::process_vm_readv(
            pid.as_raw_nonzero().get(),
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}
