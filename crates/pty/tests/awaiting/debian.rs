//! Further programs of Debian that ask, found by trying them without knowing what would be said. All run at full size only.

use outlast_pty::evidence::InputKind::{Line, Menu, Pager, Password, Repl};

use super::row::{Row, likely};

pub(crate) fn rows() -> Vec<Row> {
    let rows = [interpreters(), secrets(), questions(), versions(), games(), full_screen()];
    rows.concat().into_iter().map(Row::at_full_size).collect()
}

fn interpreters() -> Vec<Row> {
    vec![
        likely("pry", Repl, &["pry", "-f"]).once("pry(main)>"),
        likely("luajit", Repl, &["luajit"]).once(">"),
        likely("bsh", Repl, &["bsh"]).once("bsh %"),
        likely("calc", Repl, &["calc"]).once(";"),
        likely("nickle", Repl, &["nickle"]).once(">"),
        likely("yacas", Repl, &["yacas"]).once("In>"),
        likely("newlisp", Repl, &["newlisp"]).once(">"),
        likely("picolisp", Repl, &["pil", "+"]).once(":"),
        likely("scheme48", Repl, &["scheme48"]).once(">"),
        likely("mit-scheme", Repl, &["mit-scheme"]).once("1 ]=>"),
        likely("gprolog", Repl, &["gprolog"]).once("?-"),
        likely("re.pl", Repl, &["re.pl"]).once("$"),
        likely("delve", Repl, &["dlv", "exec", "tools/asking/go/asking"])
            .needs(&["tools/asking/go/asking"])
            .once("(dlv)"),
        likely("nslookup", Repl, &["nslookup"]).once(">"),
        likely("nsupdate", Repl, &["nsupdate"]).once(">"),
        likely("ncftp", Repl, &["ncftp"]).once("ncftp>"),
        likely("cadaver", Repl, &["cadaver"]).once("dav:"),
        likely("lvm", Repl, &["lvm"]).root().once("lvm>"),
        likely("at", Repl, &["at", "now + 1 hour"]).root().once("at>"),
        likely("debugfs", Repl, &["sh", "-c", "truncate -s 4M d; mkfs.ext4 -q d; exec debugfs d"])
            .root()
            .needs(&["debugfs", "mkfs.ext4"])
            .once("debugfs:"),
        likely("gpg --edit-key", Repl, &["sh", "-c", "mkdir -m700 g; gpg --homedir g --batch --passphrase '' --quick-gen-key a@b; exec gpg --homedir g --edit-key a@b"])
            .needs(&["gpg"])
            .once("gpg>"),
    ]
}

fn secrets() -> Vec<Row> {
    vec![
        likely("ccrypt", Password, &["sh", "-c", "echo a > a; exec ccrypt a"]).needs(&["ccrypt"]).once("key"),
        likely("age -p", Password, &["sh", "-c", "echo a > a; exec age -p -o a.age a"])
            .needs(&["age"])
            .once("passphrase"),
        likely("htpasswd", Password, &["htpasswd", "-c", "f", "me"]).once("assword"),
        likely("mkpasswd", Password, &["mkpasswd"]).once("assword"),
        likely("restic init", Password, &["restic", "init", "-r", "r"]).once("assword"),
        likely("smbclient", Password, &["smbclient", "//127.0.0.1/x", "-U", "me"]).once("assword"),
        likely("keytool", Password, &["keytool", "-genkey", "-alias", "a", "-keystore", "ks"])
            .once("assword"),
        likely("cryptsetup", Password, &["sh", "-c", "truncate -s 20M d; exec cryptsetup -q luksFormat d"])
            .root()
            .needs(&["cryptsetup"])
            .once("passphrase"),
        likely(
            "openssl enc",
            Password,
            &["openssl", "enc", "-aes-256-cbc", "-pbkdf2", "-in", "/etc/passwd", "-out", "x"],
        )
        .once("password"),
        likely(
            "git asks for a password",
            Password,
            &[
                "sh",
                "-c",
                "printf 'protocol=https\\nhost=x.invalid\\nusername=me\\n\\n' | git credential fill",
            ],
        )
        .needs(&["git"])
        .once("assword"),
        likely(
            "ssh-keygen -p",
            Password,
            &["sh", "-c", "ssh-keygen -q -t ed25519 -N abcdef -f k; exec ssh-keygen -p -f k"],
        )
        .needs(&["ssh-keygen"])
        .once("passphrase"),
    ]
}

fn questions() -> Vec<Row> {
    vec![
        likely("cryptsetup asks first", Line, &["sh", "-c", "truncate -s 20M d; exec cryptsetup luksFormat d"])
            .root()
            .needs(&["cryptsetup"])
            .once("sure?"),
        likely("mkfs asks first", Line, &["sh", "-c", "truncate -s 4M d; mkfs.ext4 -q d; exec mkfs.ext4 d"])
            .root()
            .needs(&["mkfs.ext4"])
            .once("roceed"),
        likely("certtool", Line, &["sh", "-c", "certtool --generate-privkey --outfile k; exec certtool --generate-self-signed --load-privkey k"])
            .needs(&["certtool"])
            .once("Country name"),
        likely("gdisk", Line, &["sh", "-c", "truncate -s 4M d; exec gdisk d"]).root().needs(&["gdisk"]).once("help)"),
        likely("hledger add", Line, &["hledger", "-f", "j", "add"]).once("Date"),
        likely("task delete", Line, &["sh", "-c", "yes | task add foo >/dev/null 2>&1; exec task 1 delete"]).needs(&["task"]).once("Delete"),
        likely("s-nail", Line, &["s-nail", "root@localhost"]).once("ubject"),
        likely("chfn", Line, &["chfn", "root"]).root().once("Full Name"),
        likely("chage", Line, &["chage", "root"]).root().once("Minimum"),
        likely("apt-get asks first", Line, &["apt-get", "-o", "Debug::NoLocking=1", "remove", "nano"]).root().once("[Y/n]"),
        likely("rm -I", Line, &["sh", "-c", "touch a b c d; exec rm -I a b c d"]),
        likely("ln -i", Line, &["sh", "-c", "touch a b; exec ln -i a b"]),
        likely("tar -w", Line, &["sh", "-c", "touch a; exec tar -cwf x.tar a"]),
        likely("gzip overwrites", Line, &["sh", "-c", "echo a > a; gzip -k a; exec gzip a"]).once("overwrite"),
        likely("a question in another script", Line, &["sh", "-c", "sleep 60 & printf '名前：'; read x"]),
        likely("cpan asks first", Line, &["cpan"]).once("[yes]"),
    ]
}

fn versions() -> Vec<Row> {
    vec![
        likely("hg commit -i", Line, &["sh", "-c", "hg init -q; echo a > f; hg add f; HGUSER=a exec hg commit -i --config ui.interface=text"])
            .needs(&["hg"])
            .once("[Ynesfdaq?]"),
        likely("hg commit", Menu, &["sh", "-c", "hg init -q; touch f; hg add f; HGUSER=a EDITOR=nano exec hg commit"])
            .needs(&["hg", "nano"])
            .once("HG:"),
        likely("darcs record", Line, &["sh", "-c", "darcs init >/dev/null; echo a > f; darcs add f; exec darcs record -A me"])
            .needs(&["darcs"])
            .once("Shall I"),
        likely("git checkout -p", Line, &["sh", "-c", "git init -q; echo 1 > f; git add f; git -c user.name=a -c user.email=a@b commit -qm x; echo 2 > f; exec git checkout -p"])
            .needs(&["git"])
            .once("Discard"),
        likely("git log", Pager, &["sh", "-c", "git init -q; for i in 1 2 3 4 5 6 7 8 9; do git -c user.name=a -c user.email=a@b commit -q --allow-empty -m c$i; done; exec git log"])
            .needs(&["git", "less"])
            .once(":"),
        likely("gh auth login", Menu, &["gh", "auth", "login"]).once("?"),
    ]
}

/// Their questions are as many as their authors.
fn games() -> Vec<Row> {
    vec![
        likely("adventure", Line, &["/usr/games/adventure"]).once("instructions"),
        likely("arithmetic", Line, &["/usr/games/arithmetic"]).once("="),
        likely("go-fish", Line, &["/usr/games/go-fish"]).once("?"),
        likely("monop", Line, &["/usr/games/monop"]).once("players"),
        likely("wump", Line, &["/usr/games/wump"]).once("?"),
        likely("hangman", Menu, &["/usr/games/hangman"]).once("Guess"),
        likely("robots", Menu, &["/usr/games/robots"]).once("Score"),
    ]
}

fn full_screen() -> Vec<Row> {
    vec![
        likely("peco", Menu, &["sh", "-c", "printf 'a\\nb\\n' | peco"]).needs(&["peco"]).once("QUERY>"),
        likely("fzf --height", Menu, &["sh", "-c", "seq 100 | fzf --height 10"])
            .needs(&["fzf"])
            .once("100/100"),
        likely("fzy", Menu, &["sh", "-c", "printf 'a\\nb\\n' | fzy"]).needs(&["fzy"]).once("b"),
        likely("iselect", Menu, &["iselect", "a", "b", "c"]).once("c"),
        likely("zile", Menu, &["zile", "f"]),
        likely("mg", Menu, &["mg", "f"]),
        likely("vile", Menu, &["vile", "f"]),
        likely("nvi", Menu, &["nvi", "f"]),
        likely("dte", Menu, &["dte", "f"]),
        likely("mle", Menu, &["sh", "-c", "touch f; exec mle f"]).needs(&["mle"]),
        likely("wordgrinder", Menu, &["wordgrinder"]),
        likely("visidata", Menu, &["sh", "-c", "printf 'a,b\\n1,2\\n' > f.csv; exec vd f.csv"])
            .needs(&["vd"])
            .once("1"),
        likely("bat", Pager, &["sh", "-c", "seq 100 > f; exec batcat f"]).needs(&["batcat"]).once(":"),
        likely("ccmake", Menu, &["sh", "-c", "echo 'project(x C)' > CMakeLists.txt; exec ccmake ."])
            .needs(&["ccmake"])
            .once("EMPTY CACHE"),
        likely("dvtm", Menu, &["dvtm", "sh"]),
        likely("testdisk", Menu, &["sh", "-c", "truncate -s 1M d; exec testdisk d"])
            .root()
            .needs(&["testdisk"])
            .once("TestDisk"),
    ]
}
