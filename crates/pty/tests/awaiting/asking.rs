//! Programs that ask a question and wait for the answer, and programs that pass it on to the one that asks.

use outlast_pty::evidence::InputKind::{Line, Menu, Password, Repl};

use super::row::{Row, certain, likely, possible};

pub(crate) fn rows() -> Vec<Row> {
    [questions(), setuid(), relays()].concat()
}

fn questions() -> Vec<Row> {
    vec![
        certain(
            "git add -p",
            Line,
            &["sh", "-c", "git init -q; echo a>f; git add f; echo b>>f; exec git add -p"],
        )
        .needs(&["git"])
        .once("Stage this hunk"),
        certain(
            "git clean -i",
            Repl,
            &["sh", "-c", "git init -q; touch a b; exec git -c clean.requireForce=false clean -i"],
        )
        .needs(&["git"])
        .once("What now"),
        certain(
            "git asks for a user name",
            Line,
            &[
                "sh",
                "-c",
                "git init -q; printf 'protocol=https\\nhost=x.invalid\\n\\n' | git credential fill",
            ],
        )
        .needs(&["git"])
        .once("Username"),
        certain("ssh-keygen asks for a file", Line, &["ssh-keygen", "-t", "ed25519"]).once("Enter file"),
        certain("ssh-keygen asks for a passphrase", Password, &["ssh-keygen", "-t", "ed25519", "-f", "k"])
            .once("passphrase"),
        certain("ssh-keygen overwrites", Line, &["sh", "-c", "touch k; exec ssh-keygen -t ed25519 -f k"])
            .needs(&["ssh-keygen"])
            .once("Overwrite"),
        certain("openssl passwd", Password, &["openssl", "passwd"]).once("Password"),
        certain("openssl genrsa", Password, &["openssl", "genrsa", "-aes256", "2048"]).once("pass phrase"),
        certain(
            "openssl req",
            Line,
            &["openssl", "req", "-new", "-newkey", "ed25519", "-nodes", "-keyout", "k"],
        )
        .once("Country Name"),
        certain("rm -i", Line, &["sh", "-c", "touch f; exec rm -i f"]),
        certain("cp -i", Line, &["sh", "-c", "touch a b; exec cp -i a b"]),
        certain("mv -i", Line, &["sh", "-c", "touch a b; exec mv -i a b"]),
        certain("find -ok", Line, &["find", "/etc/passwd", "-ok", "echo", "{}", ";"]),
        certain("xargs -p", Line, &["sh", "-c", "echo a | xargs -p echo"]),
        certain("unzip overwrites", Line, &["sh", "-c", "touch f; zip -q z.zip f; exec unzip z.zip"])
            .needs(&["zip", "unzip"])
            .once("replace"),
        certain("zip -e", Password, &["sh", "-c", "touch f; exec zip -e z.zip f"])
            .needs(&["zip"])
            .once("password"),
        certain("passwd", Password, &["passwd"]).root().once("assword"),
        certain("chsh", Line, &["chsh"]).root().once("Shell"),
        likely("su -c reads", Line, &["su", "-s", "/bin/sh", "-c", "read x", "nobody"]).root(),
        likely("gpg asks for a choice", Line, &["gpg", "--homedir", ".", "--full-generate-key"])
            .once("selection"),
        certain(
            "psql asks for a password",
            Password,
            &["psql", "-W", "-h", "127.0.0.1", "-U", "nobody", "x"],
        )
        .once("assword"),
        certain(
            "a confirmation in the words of npx",
            Line,
            &[
                "sh",
                "-c",
                "printf 'Need to install the following packages:\\nx@1\\nOk to proceed? (y) '; read x",
            ],
        ),
        certain(
            "a confirmation read by head",
            Line,
            &["sh", "-c", "printf 'Is the information correct? [Y/n] '; head -n1"],
        ),
        certain(
            "press enter in a repository",
            Line,
            &["sh", "-c", "git init -q; printf 'Resolve all conflicts, then press enter: '; read x"],
        )
        .needs(&["git"]),
    ]
}

/// Programs of another user, which may not be looked into.
fn setuid() -> Vec<Row> {
    vec![
        possible("su asks", Password, &["su"]).user().once("assword"),
        possible("passwd asks", Password, &["passwd"]).user().once("assword"),
        possible("sudo asks", Password, &["sudo", "true"]).user().once("assword"),
        possible("su asks for another", Password, &["su", "-c", "true", "daemon"]).user().once("assword"),
    ]
}

fn relays() -> Vec<Row> {
    vec![
        likely("script: read", Line, &["script", "-qc", "printf 'Name: '; read x", "/dev/null"]),
        likely("script: read without text", Line, &["script", "-qc", "read x", "/dev/null"]),
        likely(
            "script: password",
            Password,
            &["script", "-qc", "stty -echo; printf 'Password: '; read x", "/dev/null"],
        ),
        likely("script: python", Repl, &["script", "-qc", "python3 -q", "/dev/null"])
            .needs(&["python3"])
            .once(">>>"),
        likely("script in script", Line, &["script", "-qc", "script -qc 'read x' /dev/null", "/dev/null"]),
        likely(
            "tmux: read",
            Menu,
            &["tmux", "-L", "t", "-f", "/dev/null", "new-session", "printf 'Name: '; read x"],
        )
        .once("Name"),
        likely("tmux: shell", Menu, &["tmux", "-L", "t", "-f", "/dev/null", "new-session", "sh -i"]),
        likely("python pty.spawn", Line, &["python3", "-c", "import pty; pty.spawn(['sh','-c','read x'])"]),
        likely(
            "setsid in sh",
            Line,
            &["sh", "-c", "setsid sh -c 'printf \"Name: \"; read x' </dev/tty & wait"],
        ),
        likely(
            "bwrap new session",
            Line,
            &["bwrap", "--dev-bind", "/", "/", "--new-session", "sh", "-c", "read x"],
        ),
        likely(
            "bwrap unshare all",
            Line,
            &[
                "bwrap",
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                "--proc",
                "/proc",
                "--unshare-all",
                "--new-session",
                "sh",
                "-c",
                "read x",
            ],
        ),
        likely("sudo with a terminal of its own", Line, &["sudo", "-n", "sh", "-c", "read x"]).root(),
        likely("expect interact", Line, &["expect", "-c", "spawn -noecho sh -c {read x}; interact"]),
        likely("rlwrap", Repl, &["rlwrap", "sh", "-c", "printf '> '; read x"]),
        likely("screen: read", Menu, &["screen", "-c", "/dev/null", "sh", "-c", "printf 'Name: '; read x"])
            .once("Name"),
        likely("socat relays", Line, &["socat", "-", "EXEC:cat,pty,setsid,ctty"]).after("", "x\n"),
    ]
}
