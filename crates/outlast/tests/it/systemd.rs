//! Jobs under a real systemd: one that is booted as the first process of namespaces of its own, with logind and a user's manager.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use outlast_testkit::{TEST_TIMEOUT, eventually};
use serde_json::Value;

use crate::sandbox;

/// Makes a root over the machine's own, in which nothing can be changed for good, and boots it with little more than systemd.
const BOOT: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 none sys/fs/cgroup
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
cp "$2" usr/local/bin/outlast
rm -rf etc/systemd/system/*.wants
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\n' > etc/systemd/system/try.target
for unit in systemd-udevd.service systemd-udev-trigger.service systemd-modules-load.service systemd-sysctl.service \
    systemd-remount-fs.service systemd-binfmt.service systemd-random-seed.service systemd-hwdb-update.service systemd-sysusers.service \
    dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount \
    proc-sys-fs-binfmt_misc.automount; do
    ln -sf /dev/null "etc/systemd/system/$unit"
done
: > etc/fstab
rm -f etc/machine-id; echo 0123456789abcdef0123456789abcdef > etc/machine-id
useradd -R "$PWD" -m -u 4711 ann
exec chroot . env -i container=tests PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=try.target --log-target=null --show-status=0
"#;

/// A booted machine; dropping it ends all of it.
struct Machine {
    process: Child,
}

impl Machine {
    fn boot(folder: &Path) -> Option<Self> {
        if !Path::new("/lib/systemd/systemd").exists() || !rustix::process::geteuid().is_root() {
            return None;
        }
        let process = Command::new("unshare")
            .args(["-pfmuiC", "--kill-child", "sh", "-c", BOOT, "boot"])
            .arg(folder)
            .arg(env!("CARGO_BIN_EXE_outlast"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let machine = Self { process };
        eventually("systemd runs", TEST_TIMEOUT, || match machine.root("systemctl is-system-running") {
            text if text.contains("running") || text.contains("degraded") => Ok(()),
            text => Err(text),
        });
        Some(machine)
    }

    /// The first process of the new machine, seen from here.
    fn init(&self) -> Option<String> {
        let children = format!("/proc/{0}/task/{0}/children", self.process.id());
        Some(std::fs::read_to_string(children).ok()?.split_whitespace().next()?.to_owned())
    }

    fn enter(&self, words: &[&str]) -> String {
        let Some(init) = self.init() else { return "not there yet".into() };
        let out = Command::new("nsenter")
            .args(["-t", &init, "-p", "-m", "-u", "-i", "-C", "-r", "-w"])
            .args(words)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
    }

    fn root(&self, line: &str) -> String {
        self.enter(&["sh", "-c", line])
    }

    fn ann(&self, line: &str) -> String {
        let line = format!("export XDG_RUNTIME_DIR=/run/user/4711 OUTLAST_HOME=/home/ann/home; {line}");
        self.enter(&["runuser", "-u", "ann", "--", "sh", "-c", &line])
    }

    /// The processes of a user's jobs that are in a scope of ours, and those that are not.
    fn members(&self, user: &str) -> (usize, usize) {
        let look = format!(
            "for p in $(pgrep -u {user} -f 'outlast keep|sleep 47'); do grep -h '^0::' /proc/$p/cgroup; done"
        );
        let groups = self.root(&look);
        let ours = groups.lines().filter(|group| group.contains("/outlast-")).count();
        (ours, groups.lines().count() - ours)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn running(jobs: &str) -> usize {
    let list: Value = serde_json::from_str(jobs).unwrap_or_default();
    let is_live = |job: &&Value| matches!(job["status"].as_str(), Some("running" | "quiet" | "working"));
    list["jobs"].as_array().map_or(0, |jobs| jobs.iter().filter(is_live).count())
}

/// Starts two jobs in the background, one with a child of its own, and stays.
const AGENT: &str = "outlast run -d 'sleep 471'; outlast run -d 'sleep 472 & sleep 473'; exec sleep 4700";

#[test]
#[ignore = "full size: boots systemd"]
fn jobs_outlast_the_unit_of_whoever_started_them() {
    let sandbox = sandbox();
    let folder = sandbox.root().join("machine");
    std::fs::create_dir(&folder).unwrap();
    let Some(machine) = Machine::boot(&folder) else {
        outlast_testkit::left_out("systemd can't be booted", "install systemd, and run it as root");
        return;
    };
    machine
        .root("systemctl start dbus systemd-logind; loginctl enable-linger ann; systemctl start user@4711");

    // A service of the user's own systemd; and one of the system's that runs as the user, who lingers.
    let environment = "--setenv=OUTLAST_HOME=/home/ann/home --setenv=OUTLAST_SESSION=s";
    machine.ann(&format!("systemd-run --user --unit=agent {environment} sh -c \"{AGENT}\""));
    let all_moved = |what: &str, expected: usize| {
        eventually(what, TEST_TIMEOUT, || match machine.members("ann") {
            (ours, 1) if ours == expected => Ok(()),
            members => Err((members, machine.root("systemd-cgls --no-pager"))),
        });
    };
    // Two keepers with their heirs, two commands, a child; what stays is the service's own `sleep 4700`.
    all_moved("the user's jobs are in their scope", 7);
    machine.ann("systemctl --user stop agent");
    assert_eq!(running(&machine.ann("outlast --json jobs --all")), 2);
    machine.ann("outlast kill --all");
    eventually("the scope is gone", TEST_TIMEOUT, || {
        let units = machine.ann("systemctl --user list-units --all --plain --no-legend 'outlast-*'");
        if units.trim().is_empty() { Ok(()) } else { Err(units) }
    });
    machine.root(&format!("systemd-run --unit=agent -p User=ann {environment} sh -c \"{AGENT}\""));
    all_moved("those of a service with User= too", 7);
    machine.root("systemctl stop agent");
    assert_eq!(running(&machine.ann("outlast --json jobs --all")), 2);
    machine.ann("outlast kill --all");

    // Without lingering there is nobody to ask: it is said, once, and jobs end with the service.
    machine.root("loginctl disable-linger ann; systemctl stop user@4711");
    let says = "outlast run -d 'sleep 474' 2>/home/ann/first; outlast run -d 'sleep 475' 2>/home/ann/second; \
                outlast doctor >/home/ann/doctor; exec sleep 4700";
    machine.root(&format!("systemd-run --unit=agent -p User=ann {environment} sh -c \"{says}\""));
    eventually("the doctor has looked", TEST_TIMEOUT, || {
        let said = machine.root("cat /home/ann/doctor");
        if said.contains("policy") { Ok(()) } else { Err(said) }
    });
    let doctor = machine.root("grep systemd /home/ann/doctor");
    assert!(doctor.starts_with("bad") && doctor.contains("enable-linger"), "{doctor}");
    assert!(machine.root("cat /home/ann/first").contains("end when it is stopped"));
    assert!(!machine.root("cat /home/ann/second").contains("end when it is stopped"));
    machine.root("systemctl stop agent");
    assert_eq!(running(&machine.ann("outlast --json jobs --all")), 0);
}
