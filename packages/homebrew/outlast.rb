class Outlast < Formula
  desc "Shell runtime for AI agents, and for people"
  homepage "https://outlast.dev"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :linux

  on_intel do
    url "https://outlast.dev/releases/@VERSION@/outlast-@VERSION@-x86_64-linux.tar.gz"
    sha256 "@SHA256_x86_64@"
  end
  on_arm do
    url "https://outlast.dev/releases/@VERSION@/outlast-@VERSION@-aarch64-linux.tar.gz"
    sha256 "@SHA256_aarch64@"
  end

  def install
    bin.install "bin/outlast"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/completions/outlast.bash" => "outlast"
    zsh_completion.install "share/completions/_outlast"
    fish_completion.install "share/completions/outlast.fish"
  end

  test do
    assert_match "hello", shell_output("#{bin}/outlast --home #{testpath}/jobs run 'echo hello'")
  end
end
