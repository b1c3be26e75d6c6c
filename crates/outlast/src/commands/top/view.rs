//! The picture: the list, the chosen job beside it or below it, and two lines at the bottom.

use outlast_job::Handle;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use super::Top;
use super::actions::Typing;
use super::input::Mode;
use super::jobs::Need;
use super::looker::Picture;
use super::styled;
use crate::commands::jobs::rows::Row;
use crate::human;

/// From this many columns on, the job is beside the list.
const WIDE: u16 = 72;
/// The list has no more columns than this.
const MAX_LIST: u16 = 48;
/// Colours of jobs whose lines are merged.
const COLOURS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Green, Color::Magenta, Color::Blue, Color::LightRed];

const HELP: &[(&str, &str)] = &[
    ("Up Down j PgUp PgDn", "choose a job"),
    ("Enter", "its screen alone, and back"),
    ("/", "filter while typing; Esc: all again"),
    ("s", "answer: type a line, a password, yes or no"),
    ("S", "press keys by name: Ctrl-C Up Escape"),
    ("a", "attach; Ctrl-] comes back"),
    ("k", "end it (asks first)"),
    ("r", "run it again"),
    ("t", "timeline: Left Right, n p for events"),
    ("space, m", "mark jobs; their logs merged"),
    ("q Ctrl-C", "leave; all jobs run on"),
];

/// Draws all of it; says where the cursor is, if there is one.
pub(super) fn draw(top: &Top<'_>, area: Rect) -> (Buffer, Option<(u16, u16)>) {
    let mut paint = Paint { buffer: Buffer::empty(area), colour: top.colour };
    if area.height < 3 || area.width < 10 {
        paint.text((0, 0), area.width, "too small", Style::default());
        return (paint.buffer, None);
    }
    header(top, &mut paint);
    let footer = if area.height >= 8 { 2 } else { 1 };
    let body = Rect::new(0, 1, area.width, area.height - 1 - footer);
    match &top.mode {
        Mode::Help => help(&mut paint, body),
        Mode::Merged(handles) => merged(top, handles, &mut paint, body),
        Mode::Timeline(handle, at) => timeline(top, (*handle, *at), &mut paint, body),
        Mode::Browse | Mode::Filter | Mode::Type(..) | Mode::Kill(_) | Mode::Rerun(_) | Mode::Approve(..) => {
            list_and_job(top, &mut paint, body)
        }
    }
    if footer == 2 {
        keys_line(top, &mut paint, area.height - 2);
    }
    let cursor = bottom_line(top, &mut paint, area.height - 1);
    (paint.buffer, cursor)
}

/// Draws into a picture, never beyond its borders.
struct Paint {
    buffer: Buffer,
    colour: bool,
}

impl Paint {
    /// Writes at a place, in at most this many columns; returns the column after it.
    fn text(&mut self, (x, y): (u16, u16), width: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        if x >= area.right() || y >= area.bottom() {
            return x;
        }
        let style = if self.colour { style } else { Style { fg: None, bg: None, ..style } };
        self.buffer.set_stringn(x, y, text, usize::from(width.min(area.right() - x)), style).0
    }

    /// A text that fills its columns.
    fn bar(&mut self, place: (u16, u16), width: u16, text: &str, style: Style) {
        let text = human::cut(text, width.into());
        let blanks = usize::from(width).saturating_sub(human::width(&text));
        self.text(place, width, &format!("{text}{}", " ".repeat(blanks)), style);
    }
}

fn bold() -> Style {
    Style::default().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::default().add_modifier(Modifier::DIM)
}

fn reversed() -> Style {
    Style::default().add_modifier(Modifier::REVERSED)
}

fn colour_of(need: Need) -> Style {
    match need {
        Need::Asks => Style::default().fg(Color::Yellow).add_modifier(Modifier::BOLD),
        Need::Failed => Style::default().fg(Color::Red),
        Need::Runs => Style::default().fg(Color::Green),
        Need::Done => Style::default(),
    }
}

fn header(top: &Top<'_>, paint: &mut Paint) {
    let width = paint.buffer.area.width;
    let count = |need: Need| top.jobs.all().iter().filter(|row| Need::of(row) == need).count();
    let parts = [
        (count(Need::Asks), "asks"),
        (count(Need::Failed), "failed"),
        (count(Need::Runs), "running"),
        (count(Need::Done), "done"),
    ];
    let said: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let said = match (top.has_list, said.is_empty()) {
        (false, _) => "looking …".to_owned(),
        (true, true) => "no jobs".to_owned(),
        (true, false) => said.join(", "),
    };
    let filter = if top.jobs.filter.is_empty() { String::new() } else { format!(" · /{}", top.jobs.filter) };
    let silent: Vec<&str> = top.far.silent().map(outlast_protocol::HostName::as_str).collect();
    let silent =
        if silent.is_empty() { String::new() } else { format!(" · not reached: {}", silent.join(", ")) };
    let fleet = top.far.fleet_words.as_ref().map(|words| format!(" · fleet: {words}")).unwrap_or_default();
    paint.bar((0, 0), width, &format!("outlast · {said}{filter}{silent}{fleet}"), reversed());
}

fn list_and_job(top: &Top<'_>, paint: &mut Paint, body: Rect) {
    let beside = body.width >= WIDE;
    if top.wide {
        return job(top, paint, body);
    }
    if beside {
        let left = (body.width * 2 / 5).min(MAX_LIST);
        list(top, paint, Rect { width: left, ..body });
        for y in body.top()..body.bottom() {
            paint.text((left, y), 1, "│", dim());
        }
        let right = Rect { x: left + 1, width: body.width - left - 1, ..body };
        return job(top, paint, right);
    }
    let count = u16::try_from(top.jobs.shown().count()).unwrap_or(u16::MAX);
    let rows = count.clamp(1, (body.height / 3).max(2)).min(body.height);
    list(top, paint, Rect { height: rows, ..body });
    if body.height > rows + 1 {
        paint.text((0, body.y + rows), body.width, &"─".repeat(body.width.into()), dim());
        job(top, paint, Rect { y: body.y + rows + 1, height: body.height - rows - 1, ..body });
    }
}

fn list(top: &Top<'_>, paint: &mut Paint, area: Rect) {
    let height = usize::from(area.height);
    let chosen = top.jobs.at();
    let first = (chosen + 1).saturating_sub(height);
    let older = top.jobs.age_ms();
    let digits = top.jobs.shown().map(|row| row.handle.to_string().len()).max().unwrap_or(1);
    if top.has_list && top.jobs.shown().next().is_none() {
        let text = if top.jobs.all().is_empty() { "no jobs: outlast run -d COMMAND" } else { "no such job" };
        paint.text((area.x, area.y), area.width, text, dim());
    }
    for ((at, row), y) in top.jobs.shown().enumerate().skip(first).take(height).zip(area.y..) {
        let need = Need::of(row);
        let later = row.later(older);
        let mark = if top.jobs.marked.contains(&row.handle) { '*' } else { ' ' };
        let what = row.name.clone().or_else(|| row.description.clone());
        let what = what.unwrap_or_else(|| row.command.clone());
        let handle = row.handle.to_string();
        let text = format!("{}{mark}{handle:>digits$} {what}", need.sign());
        let state = short_state(top, &later, need);
        let room = usize::from(area.width).saturating_sub(human::width(&state) + 1);
        let left = human::cut(&text, room);
        let gap = usize::from(area.width).saturating_sub(human::width(&left) + human::width(&state));
        let line = format!("{left}{}{state}", " ".repeat(gap));
        let style =
            if at == chosen { colour_of(need).add_modifier(Modifier::REVERSED) } else { colour_of(need) };
        paint.text((area.x, y), area.width, &line, style);
    }
}

/// How a job is, in as few letters as can be.
fn short_state(top: &Top<'_>, row: &Row, need: Need) -> String {
    let time = human::age(row.duration_ms);
    match need {
        _ if top.ending.contains_key(&row.handle) => "ending".into(),
        Need::Asks => format!("asks {time}"),
        Need::Runs if row.is_asking() => format!("waits {time}"),
        Need::Runs => time,
        Need::Failed | Need::Done => {
            let ago = human::age(row.age_ms.saturating_sub(row.duration_ms));
            let how = row.state.exit_code().map(|code| format!("exit {code}"));
            let how = how.or_else(|| row.state.signal().map(str::to_owned));
            format!("{} {ago} ago", how.unwrap_or_else(|| row.state.name().to_owned()))
        }
    }
}

/// The chosen job: what it is, what it asks, and its screen.
fn job(top: &Top<'_>, paint: &mut Paint, area: Rect) {
    let Some(row) = top.jobs.chosen() else { return };
    let row = row.later(top.jobs.age_ms());
    let mut y = area.y;
    let mut line = |text: &str, style: Style| {
        if y < area.bottom() {
            paint.text((area.x, y), area.width, &human::cut(text, area.width.into()), style);
            y += 1;
        }
    };
    line(&title(&row), bold());
    if area.height > 6 {
        line(&format!("$ {}", row.command), dim());
    }
    let question = row.awaiting_input.as_ref().map(|awaiting| awaiting.prompt.trim().to_owned());
    match question {
        // What waits at its own prompt, or draws its own screen, is seen there.
        Some(_) if !row.needs_answer() => {}
        Some(prompt) if !prompt.is_empty() => line(&format!("? {prompt}"), colour_of(Need::Asks)),
        Some(_) => line("? it waits for input", colour_of(Need::Asks)),
        None if row.is_asking() => line("? it wants to execute something: s", colour_of(Need::Asks)),
        None => {}
    }
    let rest = Rect { y, height: area.bottom().saturating_sub(y), ..area };
    match &top.picture {
        Some((handle, picture)) if *handle == row.handle => self::picture(paint, rest, picture),
        Some(_) | None => {}
    }
}

fn title(row: &Row) -> String {
    let name = row.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let ports: String = row.ports.iter().map(|port| format!(" · :{port}")).collect();
    let time = human::duration(row.duration_ms);
    let (handle, status, session) = (row.handle, row.status(), &row.session);
    format!("{handle}{name} · {status} · {time}{ports} · {session}")
}

/// What a job shows. Where there is less room, the part with the cursor.
fn picture(paint: &mut Paint, area: Rect, picture: &Picture) {
    let height = usize::from(area.height);
    match picture {
        Picture::Nothing(why) => {
            paint.text((area.x, area.y), area.width, &human::cut(why, area.width.into()), dim());
        }
        Picture::Text(lines) => {
            let from = lines.len().saturating_sub(height);
            for (line, y) in lines[from..].iter().zip(area.top()..area.bottom()) {
                paint.text((area.x, y), area.width, &human::cut(line, area.width.into()), Style::default());
            }
        }
        Picture::Screen(shot) => {
            let last = shot.rows.iter().rposition(|row| !row.trim().is_empty()).unwrap_or(0);
            let cursor = usize::from(shot.cursor.row);
            // A program that draws on the whole screen begins at its top.
            let end = if shot.alternate { cursor + 1 } else { last.max(cursor) + 1 };
            let from = end.saturating_sub(height);
            for (row, y) in shot.rows.iter().skip(from).zip(area.top()..area.bottom()) {
                let mut x = area.x;
                for (text, style) in styled::pieces(row, paint.colour) {
                    x = paint.text((x, y), area.right().saturating_sub(x), &text, style);
                }
            }
            let (row, col) = (cursor.saturating_sub(from), shot.cursor.col);
            if shot.cursor.visible && cursor >= from && row < height && col < area.width {
                let y = area.y + u16::try_from(row).unwrap_or(0);
                paint.buffer.set_style(Rect::new(area.x + col, y, 1, 1), reversed());
            }
        }
    }
}

fn help(paint: &mut Paint, body: Rect) {
    let column = HELP.iter().map(|(keys, _)| human::width(keys)).max().unwrap_or(0);
    let column = u16::try_from(column).unwrap_or(0) + 2;
    for ((keys, text), y) in HELP.iter().zip(body.top()..body.bottom()) {
        paint.text((body.x + 1, y), column, keys, bold());
        paint.text((body.x + 1 + column, y), body.width.saturating_sub(column), text, Style::default());
    }
}

fn merged(top: &Top<'_>, handles: &[Handle], paint: &mut Paint, body: Rect) {
    let widest = top.merged.iter().map(|line| human::width(&line.name)).max().unwrap_or(0);
    let end = top.merged.len().saturating_sub(top.scrolled);
    let from = end.saturating_sub(body.height.into());
    if top.merged.is_empty() {
        let text = format!("{} jobs have printed nothing so far", handles.len());
        paint.text((body.x, body.y), body.width, &text, dim());
    }
    for (line, y) in top.merged.range(from..end).zip(body.top()..body.bottom()) {
        let name = format!("{}{} |", line.name, " ".repeat(widest - human::width(&line.name)));
        let colour = Style::default().fg(COLOURS[line.which % COLOURS.len()]);
        let x = paint.text((body.x, y), body.width, &name, colour);
        let room = body.right().saturating_sub(x + 1);
        paint.text((x + 1, y), room, &human::cut(&line.text, room.into()), Style::default());
    }
}

/// A moment of the past above, the whole time below.
fn timeline(top: &Top<'_>, (handle, at): (Handle, u64), paint: &mut Paint, body: Rect) {
    const BELOW: u16 = 4;
    let Some((_, story)) = &top.story else {
        paint.text((body.x, body.y), body.width, "reading its log …", dim());
        return;
    };
    let above = Rect { height: body.height.saturating_sub(BELOW), ..body };
    if let Some((_, picture)) = &top.then {
        self::picture(paint, above, picture);
    }
    let y = body.bottom().saturating_sub(BELOW.min(body.height));
    paint.text((body.x, y), body.width, &"─".repeat(body.width.into()), dim());
    paint.text((body.x, y + 1), body.width, &story.bars(body.width), Style::default().fg(Color::Cyan));
    paint.text((body.x, y + 2), body.width, &story.signs(body.width), bold());
    let column = story.column(at, body.width.into());
    let x = body.x + u16::try_from(column).unwrap_or(0);
    paint.buffer.set_style(Rect::new(x, y + 1, 1, 2).intersection(paint.buffer.area), reversed());
    let (now, total) = (human::duration(at), human::duration(story.total_ms));
    let happened = story.at(at).map(|moment| format!(" · {}", moment.text)).unwrap_or_default();
    let text = format!("job {handle} at {now} of {total}{happened}");
    paint.text((body.x, y + 3), body.width, &human::cut(&text, body.width.into()), Style::default());
}

/// What went on, or which keys there are.
fn keys_line(top: &Top<'_>, paint: &mut Paint, y: u16) {
    let width = paint.buffer.area.width;
    if let Some(message) = &top.message {
        paint.text((0, y), width, &human::cut(message, width.into()), bold());
        return;
    }
    let keys = match &top.mode {
        Mode::Browse => "s answer  a attach  k kill  r rerun  t past  m logs  / filter  ? help  q quit",
        Mode::Help => "any key goes back",
        Mode::Filter => "type to filter; Enter keeps it, Esc shows all",
        Mode::Type(_, Typing::Line, _) => "Enter types it with Enter, Esc does nothing",
        Mode::Type(_, Typing::Keys, _) => {
            "names of keys: Ctrl-C Up Escape F5; Enter presses them, Esc does nothing"
        }
        Mode::Kill(_) | Mode::Rerun(_) => "y does it, any other key does not",
        Mode::Approve(..) => "y allows it, n refuses it, any other key leaves it open",
        Mode::Merged(_) => "Up Down PgUp PgDn scroll, End follows, Esc goes back",
        Mode::Timeline(..) => "Left Right PgUp PgDn Home End move, n p go to events, Esc goes back",
    };
    paint.text((0, y), width, &human::cut(keys, width.into()), dim());
}

/// The command that does the same; or what is being typed, with its cursor.
fn bottom_line(top: &Top<'_>, paint: &mut Paint, y: u16) -> Option<(u16, u16)> {
    let width = paint.buffer.area.width;
    let mut typed = |before: &str, text: &str| {
        // The end of a long text, where the cursor is.
        let mut shown = text;
        let room = usize::from(width).saturating_sub(human::width(before) + 1);
        while human::width(shown) > room {
            let first = shown.chars().next().map_or(0, char::len_utf8);
            shown = &shown[first..];
        }
        let x = paint.text((0, y), width, before, bold());
        let end = paint.text((x, y), width.saturating_sub(x), shown, Style::default());
        Some((end.min(width - 1), y))
    };
    match &top.mode {
        Mode::Filter => return typed("/", &top.jobs.filter),
        Mode::Type(handle, Typing::Line, text) => return typed(&format!("outlast send {handle} "), text),
        Mode::Type(handle, Typing::Keys, text) => {
            return typed(&format!("outlast send {handle} --key "), text);
        }
        Mode::Kill(handle) => {
            let again = if top.ending.contains_key(handle) { " at once" } else { "" };
            let text = format!("End job {handle} and all that it started{again}? [y/N]  $ {}", top.command());
            paint.bar((0, y), width, &text, colour_of(Need::Asks));
        }
        Mode::Rerun(handle) => {
            let text = format!("Job {handle} runs: end it and start it again? [y/N]  $ {}", top.command());
            paint.bar((0, y), width, &text, colour_of(Need::Asks));
        }
        Mode::Approve(handle, _, text) => {
            paint.bar((0, y), width, &format!("Job {handle}: {text} [y/n]"), colour_of(Need::Asks));
        }
        Mode::Browse | Mode::Help | Mode::Merged(_) | Mode::Timeline(..) => {
            paint.text((0, y), width, &human::cut(&format!("$ {}", top.command()), width.into()), dim());
        }
    }
    None
}
