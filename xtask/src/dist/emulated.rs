//! Binaries for another kind of machine, run by an emulator: qemu-user from Debian's package, known to the kernel inside a user
//! namespace of its own only, so that nothing is left on this machine. Programs that the job runs are this machine's.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::check::expect;
use super::tree::file_ending;
use super::{Platform, Release, output};

/// What is run in there, with the program as `$0`. Its output must be [`SAID`].
const SCRIPT: &str = r#"
set -e
"$0" run 'echo hello; exit 3' || echo "code $?"
"$0" run -d --name waits 'echo asks; read x; echo got $x; sleep 600' >said
"$0" wait waits --pattern asks >said
"$0" send waits yes >said
"$0" wait waits --pattern 'got yes' >said && echo waited
"$0" kill waits >said && echo killed
"#;

const SAID: &str = "hello\ncode 3\nwaited\nkilled\n";

/// An ELF file for 64-bit ARM, in the words of `binfmt_misc`.
const ARM64: &str = r":arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:";

/// # Errors
/// What does not work in the emulator, or that there is none.
pub(super) fn check(release: &Release, folder: &Path) -> Result<(), String> {
    let foreign = release.binaries.iter().filter(|binary| !binary.platform.is_here());
    for binary in foreign {
        let emulator = emulator(binary.platform, folder)?;
        let said = output(Command::new(&emulator).arg(&binary.path).arg("--version"))?;
        let wanted = format!("outlast {}", release.version);
        expect("--version", String::from_utf8_lossy(&said).trim(), &wanted)?;
        // The kernel executes what is of that kind by the emulator, which it opens now.
        let register = r#"mount -t binfmt_misc none binfmt && printf '%s' "$1$2:F" > binfmt/register && exec sh -c "$3" "$0""#;
        std::fs::create_dir_all(folder.join("binfmt")).map_err(|error| error.to_string())?;
        let mut inside = Command::new("unshare");
        inside.args([
            "--user",
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]);
        inside.args(["sh", "-c", register]).arg(&binary.path).arg(ARM64).arg(&emulator).arg(SCRIPT);
        inside.current_dir(folder).env("OUTLAST_HOME", folder.join("jobs")).env("HOME", folder);
        let said = String::from_utf8_lossy(&output(&mut inside)?).replace('\r', "");
        expect("in the emulator", &said, SAID)?;
    }
    Ok(())
}

/// The emulator of a platform, from Debian's package, which is not installed.
fn emulator(platform: Platform, folder: &Path) -> Result<PathBuf, String> {
    if platform != Platform::Arm64 {
        return Err(format!("no emulator for {}", platform.machine()));
    }
    output(Command::new("apt-get").args(["download", "--quiet", "qemu-user-static"]).current_dir(folder))?;
    let package = file_ending(folder, ".deb")?;
    output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(folder.join("qemu")))?;
    let found = folder.join("qemu/usr/bin").join(format!("qemu-{}-static", platform.machine()));
    if found.is_file() { Ok(found) } else { Err("no emulator in qemu-user-static".into()) }
}
