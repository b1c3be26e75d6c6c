//! A growth curve as a small picture: both axes logarithmic, a line each.

use std::fmt::Write as _;

use super::stats::figure;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Told apart also by those who do not see colours: each line has its own dashes too.
const LINES: &[(&str, &str)] =
    &[("#1f77b4", ""), ("#d62728", "6 3"), ("#2ca02c", "2 3"), ("#9467bd", "8 3 2 3")];

/// A picture of one or more lines.
pub(super) struct Plot {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) lines: Vec<(&'static str, Vec<(f64, f64)>)>,
}

struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Whole decades around the values.
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let logs: Vec<f64> = values.filter(|v| *v > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        if low.is_finite() { Self { low, high: high.max(low + 1.0) } } else { Self { low: 0.0, high: 1.0 } }
    }

    fn at(&self, value: f64) -> f64 {
        (value.max(1e-9).log10() - self.low) / (self.high - self.low)
    }

    fn decades(&self) -> impl Iterator<Item = f64> + use<> {
        let (low, high) = (self.low as i32, self.high as i32);
        (low..=high).map(|power| 10_f64.powi(power))
    }
}

impl Plot {
    /// As SVG that needs nothing else.
    pub(super) fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let (x, y) = (Axis::around(points().map(|p| p.0)), Axis::around(points().map(|p| p.1)));
        let across = |value: f64| LEFT + x.at(value) * (WIDTH - LEFT - RIGHT);
        let up = |value: f64| HEIGHT - BOTTOM - y.at(value) * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{}</text>\n",
            self.title
        );
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in x.decades() {
            let at = across(tick);
            let _ = writeln!(
                svg,
                "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                short(tick)
            );
        }
        for tick in y.decades() {
            let at = up(tick);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                short(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            HEIGHT - 10.0,
            self.x
        );
        let _ = writeln!(
            svg,
            "<text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(TOP, bottom),
            self.y
        );
        for (i, (name, points)) in self.lines.iter().enumerate() {
            let (colour, dashes) = LINES[i % LINES.len()];
            let path: Vec<String> =
                points.iter().map(|&(px, py)| format!("{:.1} {:.1}", across(px), up(py))).collect();
            let _ = writeln!(
                svg,
                "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>",
                path.join("L")
            );
            for &(px, py) in points {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{} {}: {} {}</title></circle>",
                    across(px),
                    up(py),
                    figure(px),
                    self.x,
                    figure(py),
                    self.y
                );
            }
            if let Some(&(px, py)) = points.last() {
                let _ = writeln!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
                    across(px) + 8.0,
                    up(py) + 4.0
                );
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{}G", v / 1e9),
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{v}"),
    }
}
