#!/bin/sh
# Installs outlast @VERSION@ for this user, into ~/.local: the program, man pages and completions. Nothing else is touched.
#
#   curl -fsSL https://outlast.dev/install.sh | sh
#
# OUTLAST_PREFIX is another folder than ~/.local, OUTLAST_RELEASES another place to download from.
set -eu

version=@VERSION@
releases=${OUTLAST_RELEASES:-https://outlast.dev/releases/$version}
prefix=${OUTLAST_PREFIX:-$HOME/.local}

fail() {
  echo "outlast: $1" >&2
  exit 1
}

[ "$(uname -s)" = Linux ] || fail "there is no package for $(uname -s) yet: Outlast runs on Linux, and in WSL"
case $(uname -m) in
  x86_64 | amd64) machine=x86_64 ;;
  aarch64 | arm64) machine=aarch64 ;;
  *) fail "there is no package for $(uname -m); build it: cargo install --path crates/outlast" ;;
esac
name=outlast-$version-$machine-linux

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if command -v curl >/dev/null; then
  get() { curl --fail --silent --show-error --location --output "$2" "$1"; }
elif command -v wget >/dev/null; then
  get() { wget -q -O "$2" "$1"; }
else
  fail "curl or wget is needed to download it"
fi

get "$releases/$name.tar.gz" "$scratch/$name.tar.gz" || fail "cannot download $releases/$name.tar.gz"
get "$releases/SHA256SUMS" "$scratch/SHA256SUMS" || fail "cannot download $releases/SHA256SUMS"
wanted=$(grep "  $name.tar.gz\$" "$scratch/SHA256SUMS" | cut -d ' ' -f 1)
found=$(sha256sum "$scratch/$name.tar.gz" | cut -d ' ' -f 1)
[ -n "$wanted" ] && [ "$wanted" = "$found" ] || fail "$name.tar.gz is not what SHA256SUMS says; nothing was installed"

tar -xzf "$scratch/$name.tar.gz" -C "$scratch"
from=$scratch/$name
share=$prefix/share
mkdir -p "$prefix/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
  "$share/fish/vendor_completions.d"
# The old program may run: it is replaced, not written over.
cp "$from/bin/outlast" "$prefix/bin/.outlast-new"
chmod 755 "$prefix/bin/.outlast-new"
mv -f "$prefix/bin/.outlast-new" "$prefix/bin/outlast"
cp "$from"/share/man/man1/*.1 "$share/man/man1/"
cp "$from/share/completions/outlast.bash" "$share/bash-completion/completions/outlast"
cp "$from/share/completions/_outlast" "$share/zsh/site-functions/_outlast"
cp "$from/share/completions/outlast.fish" "$share/fish/vendor_completions.d/outlast.fish"

echo "outlast $version is in $prefix/bin"
case :$PATH: in
  *:"$prefix/bin":*) echo "next: outlast install --list" ;;
  *) echo "$prefix/bin is not on your PATH; add it, then: outlast install --list" ;;
esac
