//! Jobs and systemd: what a unit or a login ends, and how jobs get out of its way.
//!
//! systemd ends everything in a unit's control group when the unit is stopped, and everything in a login's when the user logs out and
//! `KillUserProcesses=` says so. A job is in the group of whoever started it. So the jobs of a session get a scope of their own, a group
//! that systemd makes for processes that run already ([why](../../../docs/decisions/0021-systemd-scopes.md)).

mod dbus;

use std::io::Error;
use std::path::{Path, PathBuf};

use dbus::{Arguments, Bus, Method};
use rustix::process::Pid;

use crate::registry::replace::{Durability, read_small, replace};
use crate::registry::stable_name::stable_hash;
use crate::registry::{Home, layout};

/// There if the machine, or this container, is run by systemd.
const BOOTED: &str = "/run/systemd/system";
/// Where systemd itself can be asked by root, without a bus.
const SYSTEM_SOCKET: &str = "/run/systemd/private";
/// Where logind can be asked.
const SYSTEM_BUS: &str = "/run/dbus/system_bus_socket";
/// How long a scope whose last process has ended may take to be removed.
const REMOVED_WITHIN: std::time::Duration = std::time::Duration::from_millis(50);
/// How the names of our scopes begin.
const OURS: &str = "outlast-";

const SYSTEMD: Method<'_> = Method {
    destination: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
    member: "",
};
const LOGIND: &str = "org.freedesktop.login1";

/// Whether systemd runs this machine, or this container.
pub(crate) fn runs_this_machine() -> bool {
    Path::new(BOOTED).exists()
}

/// Where this process is, and so the jobs that it starts, and what ends them besides their user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// systemd does not run this machine, or nothing of it that could be stopped holds us.
    Free,
    /// In a scope of ours.
    OurScope,
    /// In a unit, which jobs can leave.
    CanLeave {
        /// The unit.
        unit: String,
        /// Where the systemd that makes the scope can be asked.
        socket: PathBuf,
    },
    /// In a unit, and jobs stay in it.
    Stays {
        /// The unit.
        unit: String,
        /// Why.
        why: Stay,
    },
}

/// Why jobs stay in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// There is no systemd of the user that could be asked.
    NoManager,
    /// The user's systemd ends with their last login, so a scope of it would be worse than none.
    NoLinger,
    /// A login that ends what is in it; and no lingering.
    LoginEnds,
    /// A login that leaves what is in it alone.
    LoginLeaves,
}

impl Place {
    /// The place of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        if !runs_this_machine() {
            return Self::Free;
        }
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(&groups, rustix::process::geteuid().as_raw(), &mut Machine)
    }

    fn of(groups: &str, user: u32, machine: &mut dyn Asked) -> Self {
        let Some(unit) = group_of(groups).and_then(innermost_unit) else { return Self::Free };
        if unit.starts_with(OURS) {
            return Self::OurScope;
        }
        let unit = unit.to_owned();
        if unit == "init.scope" {
            return Self::Free;
        }
        let socket = if user == 0 {
            PathBuf::from(SYSTEM_SOCKET)
        } else {
            PathBuf::from(format!("/run/user/{user}/systemd/private"))
        };
        let is_users =
            group_of(groups).is_some_and(|group| group.contains(&format!("/user@{user}.service/")));
        if user == 0 || (is_users && machine.exists(&socket)) {
            return Self::CanLeave { unit, socket };
        }
        let lingers = machine.lingers(user);
        if lingers && machine.exists(&socket) {
            return Self::CanLeave { unit, socket };
        }
        let is_login = unit.starts_with("session-") && unit.ends_with(".scope");
        let why = match (is_login, machine.exists(&socket)) {
            (true, _) if machine.ends_logins() => Stay::LoginEnds,
            (true, _) => Stay::LoginLeaves,
            (false, true) => Stay::NoLinger,
            (false, false) => Stay::NoManager,
        };
        Self::Stays { unit, why }
    }

    /// What ends jobs here that nobody expects, in a sentence with what to do about it; none where nothing does.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let Self::Stays { unit, why } = self else { return None };
        match why {
            Stay::NoManager => Some(format!(
                "jobs are part of {unit} and end when it is stopped: your own systemd can't be asked for a scope; \
                 have it run always: loginctl enable-linger"
            )),
            Stay::NoLinger => Some(format!(
                "jobs are part of {unit} and end when it is stopped: your own systemd ends with your last login; \
                 have it run always: loginctl enable-linger"
            )),
            Stay::LoginEnds => Some(format!(
                "jobs are part of {unit} and end when you log out (KillUserProcesses=yes); \
                 let them stay: loginctl enable-linger"
            )),
            Stay::LoginLeaves => None,
        }
    }

    /// For a list of what was looked at.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Free => "no unit of systemd holds jobs".into(),
            Self::OurScope => "jobs are in a scope of their own".into(),
            Self::CanLeave { unit, .. } => {
                format!("jobs leave {unit} for a scope of their own, one for each session")
            }
            Self::Stays { unit, why: Stay::LoginLeaves } => {
                format!("jobs are part of {unit} and stay when you log out")
            }
            Self::Stays { unit, .. } => self.trouble().unwrap_or_else(|| format!("jobs are part of {unit}")),
        }
    }
}

/// What ends jobs that are started here, if it was not said of this unit before.
pub(crate) fn trouble_once(home: &Home) -> Option<String> {
    if !runs_this_machine() {
        return None;
    }
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let unit = group_of(&groups).and_then(innermost_unit)?;
    if read_small(home.as_dir(), layout::UNIT, 4096).is_ok_and(|known| known == unit.as_bytes()) {
        return None;
    }
    let _ = replace(home.as_dir(), layout::UNIT, unit.as_bytes(), Durability::Process);
    Place::of_this_process().trouble()
}

/// What is asked of the machine.
trait Asked {
    fn exists(&mut self, path: &Path) -> bool;
    /// Whether the user's systemd runs without a login.
    fn lingers(&mut self, user: u32) -> bool;
    /// Whether what is left of a login is ended.
    fn ends_logins(&mut self) -> bool;
}

struct Machine;

impl Asked for Machine {
    fn exists(&mut self, path: &Path) -> bool {
        path.exists()
    }

    fn lingers(&mut self, user: u32) -> bool {
        let path = format!("/org/freedesktop/login1/user/_{user}");
        ask_logind(&path, "org.freedesktop.login1.User", "Linger").unwrap_or(false)
    }

    fn ends_logins(&mut self) -> bool {
        ask_logind("/org/freedesktop/login1", "org.freedesktop.login1.Manager", "KillUserProcesses")
            .unwrap_or(false)
    }
}

fn ask_logind(path: &str, interface: &str, property: &str) -> Option<bool> {
    let mut arguments = Arguments::new("ss");
    arguments.text(interface);
    arguments.text(property);
    let get =
        Method { destination: LOGIND, path, interface: "org.freedesktop.DBus.Properties", member: "Get" };
    Bus::connect_to_bus(Path::new(SYSTEM_BUS)).ok()?.call(&get, &arguments).ok()?.ok()?.truth()
}

/// The control group that systemd goes by: the one of version 2, else its own of version 1.
fn group_of(groups: &str) -> Option<&str> {
    let of = |prefix: &str| {
        let group = groups.lines().find_map(|line| line.split_once(':')?.1.strip_prefix(prefix));
        group.filter(|group| group.len() > 1)
    };
    of(":").or_else(|| of("name=systemd:"))
}

/// The innermost unit of a group's path.
fn innermost_unit(group: &str) -> Option<&str> {
    group.rsplit('/').find(|part| part.ends_with(".service") || part.ends_with(".scope"))
}

/// The control group of a process, as systemd sees it.
fn group_of_process(pid: Pid) -> Option<String> {
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).ok()?;
    group_of(&groups).map(ToOwned::to_owned)
}

/// The name of the scope for a session's jobs.
fn scope_of(session: &str) -> String {
    format!("{OURS}{:016x}.scope", stable_hash(session))
}

/// Moves processes into the scope of their session, which is made if it is not there. `members` lists those that must be in it, as
/// they are now; what is in another group than this process was is left there.
///
/// # Errors
/// systemd can't be asked, or refuses.
pub(crate) fn move_into_scope(
    socket: &Path,
    session: &str,
    members: impl Fn() -> Vec<Pid>,
) -> std::io::Result<()> {
    let Some(from) = group_of_process(rustix::process::getpid()) else { return Ok(()) };
    let scope = scope_of(session);
    let mut bus = Bus::connect(socket)?;
    // Pids mean the same to it only if it can be seen from here.
    if !bus.is_of_our_pid_namespace() {
        return Err(Error::other("systemd is in another pid namespace"));
    }
    bus.call(&Method { member: "Subscribe", ..SYSTEMD }, &Arguments::new(""))?.map_err(Error::other)?;
    // What is forked while others are moved is found by another look.
    for _ in 0..8 {
        let mut pids = members();
        pids.retain(|pid| group_of_process(*pid).as_ref() == Some(&from));
        if pids.is_empty() {
            return Ok(());
        }
        match make_scope(&mut bus, &scope, session, &pids)? {
            Ok(()) => {}
            Err(error) if error.ends_with("UnitExists") => {
                // One that is being removed refuses; then it is made again.
                if attach(&mut bus, &scope, &pids)?.is_err() {
                    std::thread::sleep(REMOVED_WITHIN);
                }
            }
            // Somebody has ended meanwhile.
            Err(error) if error.ends_with("NoSuchProcess") || error.ends_with("UnixProcessIdUnknown") => {}
            Err(error) => return Err(Error::other(error)),
        }
    }
    Err(Error::other("processes came as fast as they were moved"))
}

fn make_scope(
    bus: &mut Bus,
    scope: &str,
    session: &str,
    pids: &[Pid],
) -> std::io::Result<Result<(), String>> {
    let made =
        bus.call(&Method { member: "StartTransientUnit", ..SYSTEMD }, &start(scope, session, pids, true))?;
    let made = match made {
        // Before version 253 a scope has no such property, and does what we ask for.
        Err(error)
            if error.ends_with("PropertyReadOnly")
                || error.ends_with("UnknownProperty")
                || error.ends_with("InvalidArgs") =>
        {
            bus.call(
                &Method { member: "StartTransientUnit", ..SYSTEMD },
                &start(scope, session, pids, false),
            )?
        }
        made => made,
    };
    match made {
        Ok(reply) => {
            let job = reply.texts(0).into_iter().next();
            bus.signal("JobRemoved", |message| message.texts(1).first() == job.as_ref())?;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err(error)),
    }
}

fn start(scope: &str, session: &str, pids: &[Pid], says_what_of_memory: bool) -> Arguments {
    let mut arguments = Arguments::new("ssa(sv)a(sa(sv))");
    arguments.text(scope);
    arguments.text("fail");
    arguments.array(8, |properties| {
        properties.property("Description", "s", |value| {
            value.text(&format!("Jobs of Outlast, session {session}"));
        });
        // systemd moves processes only into a scope that is somebody's own.
        properties.property("Delegate", "b", |value| value.number(1));
        properties.property("CollectMode", "s", |value| value.text("inactive-or-failed"));
        if says_what_of_memory {
            // One job that runs out of memory does not end the others.
            properties.property("OOMPolicy", "s", |value| value.text("continue"));
        }
        properties.property("PIDs", "au", |value| all(value, pids));
    });
    arguments.array(8, |_| {});
    arguments
}

fn attach(bus: &mut Bus, scope: &str, pids: &[Pid]) -> std::io::Result<Result<(), String>> {
    let mut arguments = Arguments::new("ssau");
    arguments.text(scope);
    arguments.text("");
    all(&mut arguments, pids);
    let called = bus.call(&Method { member: "AttachProcessesToUnit", ..SYSTEMD }, &arguments)?;
    Ok(called.map(|_| ()))
}

fn all(to: &mut Arguments, pids: &[Pid]) {
    to.array(4, |to| {
        for pid in pids {
            to.number(pid.as_raw_nonzero().get().unsigned_abs());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Told {
        manager: bool,
        lingers: bool,
        ends_logins: bool,
    }

    impl Asked for Told {
        fn exists(&mut self, _: &Path) -> bool {
            self.manager
        }
        fn lingers(&mut self, _: u32) -> bool {
            self.lingers
        }
        fn ends_logins(&mut self) -> bool {
            self.ends_logins
        }
    }

    const SERVICE: &str = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/agent.service\n";
    const LOGIN: &str = "1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n0::/\n";
    const SYSTEM: &str = "0::/system.slice/agent.service\n";

    fn place(groups: &str, user: u32, manager: bool, lingers: bool, ends_logins: bool) -> Place {
        Place::of(groups, user, &mut Told { manager, lingers, ends_logins })
    }

    fn why(place: Place) -> Option<Stay> {
        match place {
            Place::Stays { why, .. } => Some(why),
            Place::Free | Place::OurScope | Place::CanLeave { .. } => None,
        }
    }

    #[test]
    fn a_users_service_and_any_unit_of_root_can_be_left() {
        assert!(
            matches!(place(SERVICE, 1000, true, false, true), Place::CanLeave { unit, .. } if unit == "agent.service")
        );
        assert!(matches!(place(SYSTEM, 0, false, false, true), Place::CanLeave { .. }));
        assert_eq!(place("0::/\n", 1000, true, true, true), Place::Free);
        assert_eq!(place("0::/init.scope\n", 0, true, true, true), Place::Free);
        let ours = "0::/user.slice/user@1000.service/app.slice/outlast-00.scope\n";
        assert_eq!(place(ours, 1000, true, true, true), Place::OurScope);
    }

    /// The scope would be in the user's systemd, which ends with the last login unless it lingers.
    #[test]
    fn a_login_is_left_only_for_a_systemd_that_stays() {
        assert!(matches!(place(LOGIN, 1000, true, true, true), Place::CanLeave { .. }));
        assert_eq!(why(place(LOGIN, 1000, true, false, true)), Some(Stay::LoginEnds));
        let stays = place(LOGIN, 1000, true, false, false);
        assert_eq!((stays.trouble(), why(stays)), (None, Some(Stay::LoginLeaves)));
        assert_eq!(why(place(SYSTEM, 1000, true, false, false)), Some(Stay::NoLinger));
        assert_eq!(why(place(SYSTEM, 1000, false, false, false)), Some(Stay::NoManager));
        assert!(place(SYSTEM, 1000, false, false, false).trouble().unwrap().contains("agent.service"));
    }

    #[test]
    fn the_name_of_a_scope_is_a_units_whatever_the_session_is_called() {
        let name = scope_of("what / ever\n");
        assert!(name.starts_with(OURS) && name.ends_with(".scope") && name.len() < 64);
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)));
    }
}
