//! The texts beside the packages: a Homebrew formula, a shell installer, and the sums of all files.

use super::tree::{hex, sum};
use super::{Platform, Release, tarball};

/// The list of sums, as `sha256sum --check` reads it.
pub(super) const SUMS: &str = "SHA256SUMS";

pub(super) fn write(release: &Release) -> Result<(), String> {
    let put = |name: &str, text: &str| {
        std::fs::write(release.out.join(name), text).map_err(|error| format!("{name}: {error}"))
    };
    let mut formula = release.text("packages/homebrew/outlast.rb")?;
    for platform in Platform::ALL {
        let built = release.binaries.iter().find(|binary| binary.platform == platform);
        let sum = match built {
            Some(binary) => {
                hex(sum(&release.out.join(format!("{}.tar.gz", tarball::name(release, binary))))?)
            }
            // Not built this time: a formula that installs nothing rather than something unknown.
            None => "0".repeat(64),
        };
        formula = formula.replace(&format!("@SHA256_{}@", platform.machine()), &sum);
    }
    put("outlast.rb", &formula)?;
    put("install.sh", &release.text("packages/install.sh")?)?;
    let mut sums = String::new();
    for name in release.files()? {
        sums += &format!("{}  {name}\n", hex(sum(&release.out.join(&name))?));
    }
    put(SUMS, &sums)
}
