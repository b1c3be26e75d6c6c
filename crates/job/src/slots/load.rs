//! How busy this machine is, for whoever chooses one of several.

use std::os::fd::OwnedFd;

use outlast_protocol::{Load, SlotLoad};
use rustix::fs::{Dir, Mode, OFlags, openat};

use super::{Pressure, members, open_slot};
use crate::registry::{Home, layout};
use crate::settings::Settings;

/// How busy it is. `running` is how many of its jobs run.
pub(crate) fn load(home: &Home, settings: &Settings, running: usize) -> Load {
    let pressure = Pressure::read();
    let mut names: Vec<String> = settings.slots.keys().cloned().collect();
    names.extend(slot_names(home));
    names.sort_unstable();
    names.dedup();
    let slot = |name: String| {
        let (running, queued) = open_slot(home, &name, false).map(|slot| members(&slot)).unwrap_or_default();
        SlotLoad { places: settings.slots.get(&name).copied(), name, running, queued }
    };
    let is_of_interest =
        |slot: &SlotLoad| slot.places.is_some() || !slot.running.is_empty() || !slot.queued.is_empty();
    Load {
        slots: names.into_iter().map(slot).filter(is_of_interest).collect(),
        running,
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_available: memory_available(),
        memory_pressure: pressure.memory,
        io_pressure: pressure.io,
        pressure: pressure.over(&settings.pressure),
    }
}

fn slot_names(home: &Home) -> Vec<String> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || -> Option<OwnedFd> { openat(home.as_dir(), layout::SLOTS, flags, Mode::empty()).ok() };
    let Some(entries) = open().and_then(|dir| Dir::read_from(dir).ok()) else { return Vec::new() };
    let name = |name: &std::ffi::CStr| {
        name.to_str().ok().filter(|name| !name.starts_with('.')).map(ToOwned::to_owned)
    };
    entries.flatten().filter_map(|entry| name(entry.file_name())).collect()
}

/// In bytes.
fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
