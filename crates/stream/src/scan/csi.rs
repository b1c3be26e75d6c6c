//! A control sequence: `CSI prefix? numbers intermediates* last`.
//!
//! Numbers are parsed on demand: most sequences in a log set colours, and nothing here needs their numbers.

/// How many numbers of a sequence are parsed.
const MAX_PARAMS: usize = 32;

/// A complete control sequence as it stood in the output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Csi<'a> {
    /// Everything between `CSI` and the last byte.
    pub(crate) body: &'a [u8],
    /// The final byte, which selects the function.
    pub(crate) last: u8,
}

/// The numbers of a sequence and the bytes around them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params {
    /// One of `<=>?`, or 0.
    pub(crate) prefix: u8,
    /// The only intermediate byte, 0 for none, 0xff for more than one.
    pub(crate) intermediate: u8,
    values: [u16; MAX_PARAMS],
    len: usize,
}

impl<'a> Csi<'a> {
    pub(crate) fn new(body: &'a [u8], last: u8) -> Self {
        Self { body, last }
    }

    /// Whether this only sets colours and styles.
    pub(crate) fn is_sgr(&self) -> bool {
        self.last == b'm' && self.body.first().is_none_or(|&b| b < b'<' && b > b'/')
    }

    /// Reads prefix, numbers and intermediates; `None` if they are not in that order.
    pub(crate) fn params(&self) -> Option<Params> {
        let mut params = Params { prefix: 0, intermediate: 0, values: [0; MAX_PARAMS], len: 0 };
        let mut body = self.body;
        if let Some((&first @ b'<'..=b'?', rest)) = body.split_first() {
            params.prefix = first;
            body = rest;
        }
        let mut value = 0u16;
        // What stands behind a colon is a part of a number, and not looked at.
        let mut is_part = false;
        let mut used = 0;
        for &byte in body {
            match byte {
                b'0'..=b'9' if is_part => {}
                b'0'..=b'9' => value = value.saturating_mul(10).saturating_add(u16::from(byte - b'0')),
                b':' => is_part = true,
                b';' => {
                    params.push(value);
                    (value, is_part) = (0, false);
                }
                _ => break,
            }
            used += 1;
        }
        if used > 0 {
            params.push(value);
        }
        params.intermediate = match &body[used..] {
            [] => 0,
            [one @ 0x20..=0x2f] => *one,
            more if more.iter().all(|b| (0x20..=0x2f).contains(b)) => 0xff,
            _ => return None,
        };
        Some(params)
    }
}

impl Params {
    /// Adds a number, if there is room for it.
    fn push(&mut self, value: u16) {
        if let Some(place) = self.values.get_mut(self.len) {
            *place = value;
            self.len += 1;
        }
    }

    /// The number at `index`, or `default` where it is missing or 0 (which means the same to a terminal).
    pub(crate) fn get(&self, index: usize, default: u16) -> usize {
        match self.values[..self.len].get(index) {
            None | Some(0) => usize::from(default),
            Some(&value) => usize::from(value),
        }
    }

    /// All numbers; an empty sequence has a single 0.
    pub(crate) fn values(&self) -> &[u16] {
        &self.values[..self.len.max(1)]
    }

    /// Neither prefix nor intermediate: the standard meaning of the last byte.
    pub(crate) fn is_plain(&self) -> bool {
        self.prefix == 0 && self.intermediate == 0
    }
}

/// If `bytes` (after `CSI`) begins with a complete sequence: its body, its final byte, and its length.
pub(super) fn whole(bytes: &[u8]) -> Option<(&[u8], u8, usize)> {
    for (index, &byte) in bytes.iter().take(super::MAX_CSI).enumerate() {
        match byte {
            0x20..=0x3f => {}
            0x40..=0x7e => return Some((&bytes[..index], byte, index + 1)),
            _ => return None,
        }
    }
    None
}
