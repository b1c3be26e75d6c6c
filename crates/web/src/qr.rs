//! A QR code in a terminal: to open a link with a phone.

use qrcode::{Color, EcLevel, QrCode};

/// The link as a QR code of half blocks, dark on light whatever the terminal's colours; none for what does not fit into one.
#[must_use]
pub fn in_terminal(link: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(link, EcLevel::L).ok()?;
    let width = code.width().cast_signed();
    let is_dark = |x: isize, y: isize| {
        let inside = (0..width).contains(&x) && (0..width).contains(&y);
        inside && code[(x.cast_unsigned(), y.cast_unsigned())] == Color::Dark
    };
    let mut text = String::new();
    for y in (-2..width + 2).step_by(2) {
        text.push_str("\x1b[30;107m");
        for x in -2..width + 2 {
            text.push(match (is_dark(x, y), is_dark(x, y + 1)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        text.push_str("\x1b[0m\n");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_fits_into_a_small_terminal() {
        let link = format!("https://workstation.example.net:8443/#ticket={}", "0".repeat(64));
        let code = in_terminal(&link).unwrap();
        let rows: Vec<&str> = code.lines().collect();
        assert!(rows.len() <= 24, "{} rows", rows.len());
        let cells = |row: &str| row.replace("\x1b[30;107m", "").replace("\x1b[0m", "").chars().count();
        assert!(rows.iter().all(|row| cells(row) == cells(rows[0]) && cells(row) <= 80));
    }
}
