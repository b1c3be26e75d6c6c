//! Whether one word is another with a slip of the finger: for "did you mean".

/// Whether two words differ by one change: a letter more, less or other, or two that changed places.
#[must_use]
pub fn is_near(one: &str, other: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if a == b || a.len().abs_diff(b.len()) > 1 || a.len() < 3 {
        return false;
    }
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    let swapped = a.len() == b.len() && a.len() > 1 && (a[0], a[1]) == (b[1], b[0]) && a[2..] == b[2..];
    let tail = |word: &[char]| word.get(1..).unwrap_or_default().to_vec();
    swapped || tail(a) == tail(b) || tail(a) == b || a == tail(b)
}

/// The first known word that is nearly the same.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().find(|known| is_near(name, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_differ_by_one_change() {
        let near =
            [("--backgroud", "--background"), ("pyhton3", "python3"), ("gti", "git"), ("maek", "make")];
        for (one, other) in near {
            assert!(is_near(one, other), "{one} {other}");
        }
        for (one, other) in [("ls", "ps"), ("git", "git"), ("sleep", "less"), ("npm", "node")] {
            assert!(!is_near(one, other), "{one} {other}");
        }
    }
}
