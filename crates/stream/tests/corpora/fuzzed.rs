//! The fuzz targets without a fuzzer: every saved input, and many that are mutated from them. So what the
//! fuzzer found once is tried in each run, with a stable compiler. `fuzz/README.md` says how to run the real
//! fuzzer.

use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[expect(unreachable_pub, reason = "a library for the fuzz targets")]
#[path = "../../../../fuzz/src/lib.rs"]
mod checks;

/// Pieces that mean something to a terminal: random bytes seldom do.
const TOKENS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\t",
    b"\x08",
    b"\x0b",
    b"\x0e",
    b"\x0f",
    b"\x1b",
    b"\x1b[",
    b"\x1b[A",
    b"\x1b[9A",
    b"\x1b[B",
    b"\x1b[2C",
    b"\x1b[D",
    b"\x1b[3G",
    b"\x1b[H",
    b"\x1b[2;3H",
    b"\x1b[d",
    b"\x1b[J",
    b"\x1b[1J",
    b"\x1b[2J",
    b"\x1b[3J",
    b"\x1b[K",
    b"\x1b[1K",
    b"\x1b[2K",
    b"\x1b[L",
    b"\x1b[2M",
    b"\x1b[3P",
    b"\x1b[2@",
    b"\x1b[4X",
    b"\x1b[S",
    b"\x1b[2T",
    b"\x1b[2;4r",
    b"\x1b[r",
    b"\x1b[s",
    b"\x1b[u",
    b"\x1b[5b",
    b"\x1b[I",
    b"\x1b[Z",
    b"\x1b[4h",
    b"\x1b[4l",
    b"\x1b[20h",
    b"\x1b[?7l",
    b"\x1b[?7h",
    b"\x1b[?6h",
    b"\x1b[?3h",
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[?25l",
    b"\x1b[?2026h",
    b"\x1b[6n",
    b"\x1b[c",
    b"\x1b[!p",
    b"\x1b[1;31m",
    b"\x1b[m",
    b"\x1b7",
    b"\x1b8",
    b"\x1bD",
    b"\x1bE",
    b"\x1bM",
    b"\x1bc",
    b"\x1b(0",
    b"\x1b(B",
    b"\x1b#8",
    b"\x1b]0;t\x07",
    b"\x1b]11;?\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x9b",
    b"\xc2\x9b",
    b"\xff",
    b"0\r\n1\r\n2\r\n3\r\n4\r\n",
    "漢".as_bytes(),
    "e\u{301}".as_bytes(),
    "🙂".as_bytes(),
    b"abc ",
    b"                    ",
    b"xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    /// A number below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }
}

fn saved(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/saved").join(target);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut inputs: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    inputs
}

fn changed(inputs: &[(String, Vec<u8>)], numbers: &mut Numbers) -> Vec<u8> {
    let mut input = inputs[numbers.below(inputs.len())].1.clone();
    for _ in 0..=numbers.below(5) {
        let at = numbers.below(input.len() + 1);
        let end = at + numbers.below((input.len() - at).min(40) + 1);
        match numbers.below(7) {
            0 | 1 => {
                let token = TOKENS[numbers.below(TOKENS.len())];
                input.splice(at..at, token.iter().copied());
            }
            2 => drop(input.drain(at..end)),
            3 => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            4 => {
                let other = &inputs[numbers.below(inputs.len())].1;
                let from = numbers.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            // The first bytes choose sizes and cuts.
            5 => {
                let first = numbers.below(4.min(input.len()) + 1).saturating_sub(1);
                if let Some(byte) = input.get_mut(first) {
                    *byte = u8::try_from(numbers.below(256)).unwrap();
                }
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = u8::try_from(numbers.below(256)).unwrap();
                }
            }
        }
    }
    input.truncate(4096);
    input
}

fn check(check: fn(&[u8]), name: &str, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| check(input))).is_err() {
        let hex = input.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        panic!("{name} breaks it; to save it: xxd -r -p > fuzz/saved/TARGET/NAME <<< {hex}");
    }
}

fn saved_and_changed(target: &str, function: fn(&[u8]), rounds: usize) {
    let inputs = saved(target);
    for (name, input) in &inputs {
        check(function, name, input);
    }
    let long = std::env::var_os("OUTLAST_LONG_TESTS").is_some();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 0..if long { rounds * 50 } else { rounds } {
        check(function, &format!("round {round}"), &changed(&inputs, &mut numbers));
    }
}

#[test]
fn the_fold_is_the_same_for_every_cut_of_saved_and_mutated_inputs() {
    saved_and_changed("fold", checks::fold, 4_000);
}

#[test]
fn any_key_name_is_a_key_or_an_error_for_saved_and_mutated_inputs() {
    saved_and_changed("keys", checks::keys, 20_000);
}

#[test]
fn passthrough_is_harmless_for_saved_and_mutated_inputs() {
    saved_and_changed("passthrough", checks::passthrough, 4_000);
}
