//! Further programs, most of them too large to install for every change: interpreters, debuggers, full-screen programs, pagers, clients, and
//! programs at work.

use outlast_pty::evidence::InputKind::{Key, Line, Menu, Pager, Password, Repl};

use super::row::{Row, busy, likely, listens};

pub(crate) fn rows() -> Vec<Row> {
    let rows = [
        interpreters(),
        debuggers(),
        clients(),
        full_screen(),
        editors(),
        asking(),
        compiled(),
        at_work(),
        interpreters_at_work(),
    ];
    rows.concat().into_iter().map(Row::at_full_size).collect()
}

fn interpreters() -> Vec<Row> {
    vec![
        likely("R", Repl, &["R", "--no-save", "--quiet"]).once(">"),
        likely("gnuplot", Repl, &["gnuplot"]).once("gnuplot>"),
        likely("clisp", Repl, &["clisp", "-q"]).once("[1]>"),
        likely("chicken", Repl, &["csi", "-q"]).once("#;1>"),
        likely("poly", Repl, &["poly"]).once(">"),
        likely("maxima", Repl, &["maxima", "-q"]).once("(%i1)"),
        likely("gap", Repl, &["gap", "-b"]).once("gap>"),
        likely(
            "ghc -e getLine",
            Line,
            &["ghc", "-e", "putStr \"Name: \" >> System.IO.hFlush System.IO.stdout >> getLine"],
        )
        .once("Name:"),
        likely("csharp", Repl, &["csharp"]).once("csharp>"),
        likely("clojure", Repl, &["clojure"]).once("user=>"),
        likely("units", Line, &["units"]).once("You have:"),
        likely("qalc", Repl, &["qalc"]).once(">"),
        likely("yash", Repl, &["yash", "--norcfile", "--noprofile"]).once("#").root(),
        likely("mksh", Repl, &["mksh"]).once("#").root(),
        likely("rc", Repl, &["rc", "-i"]).once(";"),
        likely("tcsh", Repl, &["tcsh", "-f"]).once("#").root(),
        likely("busybox ash", Repl, &["busybox", "ash"]).once("#").root(),
        likely("ptpython", Repl, &["tools/asking/py/bin/ptpython"]).once(">>>"),
        likely("bpython", Repl, &["tools/asking/py/bin/bpython"]).once(">>>"),
        likely("ipython 9", Repl, &["tools/asking/py/bin/ipython", "--no-banner"]).once("In [1]"),
        likely("gawk reads", Line, &["gawk", "{print}"]),
        likely("perl -de", Repl, &["perl", "-de0"]).once("DB<1>"),
        likely("octave", Repl, &["octave-cli", "-q"]).once("octave:1>"),
        likely("swipl after a query", Key, &["swipl", "-q"]).after("?-", "member(X,[1,2]).\n").once("X = 1"),
        likely("guile debugger", Repl, &["guile", "-q"]).after("scheme@", "(car 1)\n").once("[1]>"),
        likely("irb, an open block", Repl, &["irb", "--nocolorize"]).after("irb", "def f\n").once("002"),
        likely("node, an open brace", Repl, &["node"]).after(">", "function f() {\n").once("..."),
        likely("python, an open block", Repl, &["python3", "-q"]).after(">>>", "def f():\n").once("..."),
        likely("sqlite3, an open statement", Repl, &["sqlite3", "-interactive"])
            .after("sqlite>", "select\n")
            .once("...>"),
        likely("bash, an open quote", Repl, &["bash", "--norc", "-i"])
            .after("#", "echo 'a\n")
            .once("\n>")
            .root(),
    ]
}

fn debuggers() -> Vec<Row> {
    vec![
        likely("erl asks", Line, &["erl", "-noshell", "-eval", "io:get_line(\"Name: \")."]).once("Name:"),
        likely("lldb", Repl, &["lldb", "-x"]).once("(lldb)"),
        likely(
            "jdb",
            Repl,
            &[
                "sh",
                "-c",
                "echo 'class A{public static void main(String[] a){}}' > A.java; javac A.java; exec jdb A",
            ],
        )
        .once(">")
        .needs(&["jdb", "javac"]),
        likely("pdb", Repl, &["sh", "-c", "echo x=1 > a.py; exec python3 -m pdb a.py"]).once("(Pdb)"),
        likely("rdbg", Repl, &["ruby", "-e", "require 'irb'; x=1; binding.irb"]).once("irb"),
        likely(
            "bash trap debug",
            Line,
            &["bash", "-c", "trap 'read -p \"dbg? \" x </dev/tty' DEBUG; echo hi"],
        )
        .once("dbg?"),
        likely("gdb asks to quit", Line, &["gdb", "-q", "-nx", "--args", "sleep", "60"])
            .after("(gdb)", "starti\n")
            .after("0x", "quit\n")
            .once("(y or n)"),
        busy("lldb runs a program", &["lldb", "-x", "--", "sleep", "60"])
            .after("(lldb)", "run\n")
            .once("launched"),
        busy(
            "pdb continues",
            &["sh", "-c", "printf 'import time\\ntime.sleep(60)\\n' > a.py; exec python3 -m pdb a.py"],
        )
        .after("(Pdb)", "c\n")
        .once("(Pdb) c"),
    ]
}

fn clients() -> Vec<Row> {
    vec![
        likely("ftp", Repl, &["tnftp"]).once("ftp>"),
        likely("lftp", Repl, &["lftp", "--norc"]).once("lftp"),
        likely("telnet", Repl, &["telnet"]).once("telnet>"),
        likely("mariadb asks", Password, &["mariadb", "-u", "x", "-p"]).once("password:"),
        likely("psql asks", Password, &["psql", "-W", "-h", "127.0.0.1", "x"]).once("Password"),
        likely("litecli", Repl, &["litecli", "--liteclirc", "/dev/null", "a.db"]).once("a.db>"),
        likely("redis-cli, not connected", Repl, &["redis-cli", "-p", "1"]).once("not connected>"),
        likely("openssl asks for a pass phrase", Password, &["openssl", "genrsa", "-aes128", "-out", "k", "2048"]).once("pass phrase"),
        likely("openssl req -x509", Line, &["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "k", "-out", "c"]).once("Country Name"),
        likely("curl asks", Password, &["curl", "-u", "x", "http://127.0.0.1:1/"]).once("password"),
        likely("ssh-add asks", Password, &["sh", "-c", "ssh-keygen -q -t ed25519 -N abcdef -f k; exec ssh-keygen -y -f k"]).once("passphrase"),
        likely("gpg asks for a name", Line, &["gpg", "--homedir", ".", "--generate-key"]).once("Real name:"),
        likely("pinentry-tty", Password, &["sh", "-c", "t=$(tty); (printf 'OPTION ttyname=%s\\nSETPROMPT Code:\\nGETPIN\\n' $t; sleep 60) | pinentry-tty"]).once("Code:").needs(&["pinentry-tty"]),
        listens("nc, connected", &["sh", "-c", "nc -l 127.0.0.1 47113 >/dev/null </dev/null & sleep .5; echo up; exec nc 127.0.0.1 47113"]).once("up").needs(&["nc"]),
        busy("nc listens", &["sh", "-c", "echo up; exec nc -l 127.0.0.1 47114 </dev/null"]).once("up").needs(&["nc"]),
    ]
}

fn full_screen() -> Vec<Row> {
    vec![
        likely("ncdu", Menu, &["ncdu", "/etc/apt"]).once("Total disk"),
        likely("nnn", Menu, &["nnn", "/etc"]).once("/"),
        likely("ranger", Menu, &["ranger", "/etc/apt"]).once("sources"),
        likely("tig", Menu, &["sh", "-c", "git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first; exec tig"]).once("first").needs(&["tig"]),
        likely("vifm", Menu, &["vifm", "/etc/apt"]).once("sources"),
        likely("lynx", Menu, &["sh", "-c", "echo '<a href=x>one</a>' > a.html; exec lynx a.html"]).once("one").needs(&["lynx"]),
        likely("w3m", Menu, &["sh", "-c", "echo '<a href=x>one</a>' > a.html; exec w3m a.html"]).once("one").needs(&["w3m"]),
        likely("links", Menu, &["sh", "-c", "echo '<a href=x>one</a>' > a.html; exec links a.html"]).once("one").needs(&["links"]),
        likely("elinks", Menu, &["sh", "-c", "echo '<a href=x>one</a>' > a.html; exec elinks -no-connect a.html"]).once("one").needs(&["elinks"]),
        likely("sc", Menu, &["sc"]).once("help"),
        likely("calcurse", Menu, &["calcurse"]).once("Calendar"),
        likely("aptitude", Menu, &["aptitude", "--disable-columns"]).once("Packages").root(),
        likely("irssi", Menu, &["irssi", "--home=."]).once("status"),
        likely("mutt asks", Menu, &["mutt", "-n", "-F", "/dev/null", "-e", "set folder=. spoolfile=./none"]).once("mutt"),
        likely("multitail", Menu, &["sh", "-c", "seq 5 > f; exec multitail f"]).once("5").needs(&["multitail"]),
        likely("cfdisk", Menu, &["sh", "-c", "truncate -s 10M d; exec /usr/sbin/cfdisk d"]).once("Select"),
        likely("less in a pipeline", Pager, &["sh", "-c", "seq 99 | less"]).once(":"),
        likely("most", Pager, &["sh", "-c", "seq 99 > f; exec most f"]).once("MOST").needs(&["most"]),
        likely("man", Pager, &["sh", "-c", "MANPAGER=less exec man ls"]).once("Manual page"),
        likely("dialog menu", Menu, &["dialog", "--menu", "Pick", "15", "40", "4", "1", "one", "2", "two"]).once("two"),
        likely("dialog password", Menu, &["dialog", "--passwordbox", "Password?", "10", "40"]).once("Password"),
        likely("whiptail menu", Menu, &["whiptail", "--menu", "Pick", "15", "40", "4", "1", "one", "2", "two"]).once("two"),
    ]
}

fn editors() -> Vec<Row> {
    vec![
        likely("joe", Menu, &["joe", "f"]).once("Joe"),
        likely("ne", Menu, &["ne", "f"]).once("L:"),
        likely("jed", Menu, &["jed", "-n", "f"]).once("Jed"),
        likely("kak", Menu, &["kak", "-n", "f"]).once("client0"),
        likely("hexedit", Menu, &["hexedit", "/etc/passwd"]).once("0x0"),
        likely("bvi", Menu, &["sh", "-c", "seq 5 > f; exec bvi f"]).once("00000").needs(&["bvi"]),
        likely("mcedit", Menu, &["mcedit", "f"]).once("Quit"),
        likely("vim asks to recover", Menu, &["sh", "-c", "touch f; vim -u NONE -es -c 'set directory=. | preserve' -c '!touch .f.swp' -c q f; exec vim -u NONE -c 'set directory=.' f"]).once("~").needs(&["vim"]),
        likely("crontab's editor", Menu, &["sh", "-c", "EDITOR=nano exec git -c core.editor=nano config --global -e"]).once("Help"),
    ]
}

fn asking() -> Vec<Row> {
    vec![
        likely("fdisk", Line, &["sh", "-c", "truncate -s 10M d; exec /usr/sbin/fdisk d"]).once("Command (m for help):"),
        likely("parted", Repl, &["sh", "-c", "truncate -s 10M d; exec /usr/sbin/parted d"]).once("(parted)"),
        likely("parallel -p", Line, &["sh", "-c", "exec parallel -p echo ::: a b"]).once("?...").needs(&["parallel"]),
        likely("busybox vi", Menu, &["busybox", "vi", "f"]).once("f"),
        likely("patch asks", Line, &["sh", "-c", "printf -- '--- a\\n+++ b\\n@@ -1 +1 @@\\n-x\\n+y\\n' > p; exec patch < p"]).once("File to patch:").needs(&["patch"]),
        likely("git rebase -i opens an editor", Menu, &["sh", "-c", "git init -q; for i in 1 2; do git -c user.name=a -c user.email=a@b commit -q --allow-empty -m $i; done; GIT_EDITOR='vim -u NONE' exec git -c user.name=a -c user.email=a@b rebase -i --root"]).once("pick"),
        likely("read in zsh", Line, &["zsh", "-f", "-c", "read 'x?Your name: '"]).once("name"),
        likely("vared in zsh", Line, &["zsh", "-f", "-c", "x=; vared -p 'Edit it: ' x"]).once("Edit it"),
        likely("read in fish", Line, &["fish", "--no-config", "-c", "read -P 'Your name: ' x"]).once("name"),
        likely("read -s in fish", Password, &["fish", "--no-config", "-c", "read -s -P 'Your password: ' x"]).once("password"),
        likely("ruby gets", Line, &["ruby", "-e", "print 'Name: '; gets"]).once("Name"),
        likely("ruby getpass", Password, &["ruby", "-rio/console", "-e", "IO.console.getpass('Passwort: ')"]).once("Passwort"),
        likely("ruby getch", Key, &["ruby", "-rio/console", "-e", "print 'Which one? '; STDIN.getch"]).once("Which"),
        likely("perl ReadLine", Line, &["perl", "-e", "$|=1; print 'Name: '; <STDIN>"]).once("Name"),
        likely("php readline", Line, &["php", "-r", "readline('Name: ');"]).once("Name"),
        likely("php fgets", Line, &["php", "-r", "echo 'Name: '; fgets(STDIN);"]).once("Name"),
        likely("lua io.read", Line, &["lua5.4", "-e", "io.write('Name: ') io.flush() io.read()"]).once("Name"),
        likely("chpasswd reads", Line, &["chpasswd"]).root(),
        likely("at a form feed", Line, &["sh", "-c", "printf 'Weiter mit [Eingabe] '; read x"]).once("Weiter"),
    ]
}

/// Libraries of Rust and Go, in one program each.
fn compiled() -> Vec<Row> {
    macro_rules! rust {
        ($which:literal) => {
            &["tools/asking/rust/target/debug/asking", $which]
        };
    }
    macro_rules! go {
        ($which:literal) => {
            &["tools/asking/go/asking", $which]
        };
    }
    vec![
        likely("dialoguer Input", Line, rust!("d-input")).once("Project"),
        likely("dialoguer Confirm", Key, rust!("d-confirm")).once("Go on?"),
        likely("dialoguer Select", Menu, rust!("d-select")).once("three"),
        likely("dialoguer MultiSelect", Menu, rust!("d-multi")).once("three"),
        likely("dialoguer Sort", Menu, rust!("d-fuzzy")).once("three"),
        likely("dialoguer Password", Password, rust!("d-password")).once("Geheim"),
        likely("dialoguer Password, themed", Password, rust!("d-theme-password")).once("password"),
        likely("inquire Text", Line, rust!("i-text")).once("Name?"),
        likely("inquire Password", Password, rust!("i-password")).once("key"),
        likely("inquire Password, a code", Password, rust!("i-password2")).once("Code"),
        likely("inquire Confirm", Line, rust!("i-confirm")).once("Deploy?"),
        likely("inquire Select", Menu, rust!("i-select")).once("three"),
        likely("inquire MultiSelect", Menu, rust!("i-multi")).once("three"),
        likely("rpassword", Password, rust!("rpassword")).once("Vault"),
        likely("cliclack input", Line, rust!("c-text")).once("Where?"),
        likely("cliclack password", Password, rust!("c-password")).once("password"),
        likely("cliclack select", Menu, rust!("c-select")).once("two"),
        likely("cliclack confirm", Menu, rust!("c-confirm")).once("Sure?"),
        busy("cliclack spinner", rust!("c-spinner")).once("Installing"),
        likely("rustyline", Repl, rust!("rustyline")).once("calc>"),
        likely("rustyline, a question", Line, rust!("rustyline-question")).once("name"),
        likely("reedline", Repl, rust!("reedline")).once("〉"),
        busy("indicatif bar", rust!("bar")).once("/1000"),
        busy("indicatif spinner", rust!("spinner")).once("Resolving"),
        likely("crossterm, one key", Key, rust!("key")).once("Which"),
        likely("ratatui", Menu, rust!("ratatui")).once("Hello"),
        listens("ratatui, a thread accepts", rust!("ratatui-work")).once("Downloading"),
        likely("survey Input", Line, go!("s-input")).once("Name?"),
        likely("survey Password", Password, go!("s-password")).once("Passphrase"),
        likely("survey Confirm", Line, go!("s-confirm")).once("Deploy?"),
        likely("survey Select", Menu, go!("s-select")).once("b"),
        likely("promptui Prompt", Line, go!("p-prompt")).once("Number"),
        likely("promptui Password", Password, go!("p-password")).once("Password"),
        likely("promptui Select", Menu, go!("p-select")).once("b"),
        likely("x/term ReadPassword", Password, go!("t-password")).once("key"),
        likely("go Scanln", Line, go!("scan")).once("Age"),
        likely("go Scanln, a line of its own", Line, go!("scan-newline")).once("old"),
        likely("go Scanln beside a ticker", Line, go!("scan-ticker")).once("Age"),
        likely("bubbletea", Menu, go!("tea")).once("two"),
        likely("bubbletea, alternate screen", Menu, go!("tea-alt")).once("two"),
        busy("bubbletea spinner", go!("tea-spinner")).once("Installing"),
        busy("go sleeps behind a colon", go!("sleep")).once("Compiling"),
        busy("go sleeps beside a reader", go!("sleep-reader")).once("up"),
    ]
}

fn at_work() -> Vec<Row> {
    vec![
        busy("wget from a silent server", &["sh", "-c", "nc -l 127.0.0.1 47115 >/dev/null </dev/null & sleep .4; exec wget -O x http://127.0.0.1:47115/"]).once("awaiting response").needs(&["wget", "nc"]),
        busy("curl from a silent server", &["sh", "-c", "nc -l 127.0.0.1 47116 >/dev/null </dev/null & sleep .4; echo go; exec curl -s http://127.0.0.1:47116/"]).once("go").needs(&["nc"]),
        busy("git clone from a silent server", &["sh", "-c", "nc -l 127.0.0.1 47117 >/dev/null </dev/null & sleep .4; exec git clone git://127.0.0.1:47117/x"]).once("Cloning").needs(&["nc"]),
        busy("pv, slowly", &["sh", "-c", "pv -L 10 /etc/passwd >/dev/null"]).once("B").needs(&["pv"]),
        busy("parallel --bar", &["sh", "-c", "exec parallel --bar sleep ::: 30 31"]).once("0:2").needs(&["parallel"]),
        busy("entr, a clean tree", &["sh", "-c", "touch a; echo a | entr -n echo changed"]).once("changed").needs(&["entr"]),
        listens("entr takes keys", &["sh", "-c", "touch a; echo a | entr echo changed"]).once("changed").needs(&["entr"]),
        busy("inotifywait", &["inotifywait", "-m", "."]).once("established"),
        busy("go build", &["sh", "-c", "echo 'package main\nimport _ \"net/http\"\nfunc main(){}' > a.go; printf 'Compiling: '; while :; do GOCACHE=$PWD/c go build -a -o x a.go; done"]).once("Compiling").needs(&["go"]),
        busy("gcc again and again behind a question", &["sh", "-c", "printf 'Building? '; while :; do echo 'int main(){return 0;}' | gcc -O2 -xc - -o a; done"]).once("Building"),
        busy("rsync to a silent host", &["sh", "-c", "nc -l 127.0.0.1 47118 >/dev/null </dev/null & sleep .4; echo go; exec rsync rsync://127.0.0.1:47118/x/ ."]).once("go").needs(&["rsync", "nc"]),
        busy("ssh to a silent host", &["sh", "-c", "nc -l 127.0.0.1 47119 >/dev/null </dev/null & sleep .4; echo go; exec ssh -p 47119 127.0.0.1"]).once("go").needs(&["nc"]),
        busy("make with a slow step", &["sh", "-c", "printf 'all:\\n\\t@printf \"Continue? \"; sleep 60\\n' > Makefile; exec make"]).once("Continue?"),
        busy("dots", &["bash", "-c", "printf 'Waiting for server'; while :; do printf .; sleep .9; done"]).once("server."),
        busy("a countdown", &["bash", "-c", "for i in {30..1}; do printf '\\rStarting in %d: ' $i; sleep 1; done"]).once("Starting in 29"),
        busy("apt-get update from a silent mirror", &["sh", "-c", "nc -l 127.0.0.1 47120 >/dev/null </dev/null & sleep .4; mkdir -p l/partial; echo 'deb [trusted=yes] http://127.0.0.1:47120 x y' > s; exec apt-get update -o Dir::Etc::sourcelist=$PWD/s -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$PWD/l"]).once("0%").needs(&["nc"]).root(),
        busy("watch, a label", &["watch", "-n", "1", "echo 'Name: '"]).once("Name"),
        busy("php's server", &["php", "-S", "127.0.0.1:47121"]).once("started"),
        busy("ruby sleeps", &["ruby", "-e", "print 'Name: '; sleep 60"]).once("Name"),
        busy("lua spins", &["lua5.4", "-e", "io.write('Name: ') io.flush() while true do end"]).once("Name"),
        busy("sqlite3 at work", &["sqlite3", "-interactive"]).after("sqlite>", "with recursive c(x) as (values(1) union all select x+1 from c) select count(*) from c;\n").once("count(*)"),
        busy("psql to a silent server", &["sh", "-c", "nc -l 127.0.0.1 47122 >/dev/null </dev/null & sleep .4; echo go; exec psql -h 127.0.0.1 -p 47122 x"]).once("go").needs(&["psql", "nc"]),
        busy("expect sleeps", &["expect", "-c", "send_user {Password: }; sleep 60"]).once("Password"),
        busy("script, at work inside", &["script", "-qc", "printf 'Name: '; sleep 60", "/dev/null"]).once("Name"),
        busy("a subshell in the background asks nobody", &["sh", "-c", "(printf 'Name: '; sleep 60) & wait"]).once("Name"),
    ]
}

fn interpreters_at_work() -> Vec<Row> {
    vec![
        busy("R sleeps", &["R", "--no-save", "--quiet"]).after(">", "Sys.sleep(60)\n").once("sleep"),
        busy("ghci sleeps", &["ghci", "-v0", "-ignore-dot-ghci"])
            .after("ghci>", "Control.Concurrent.threadDelay 60000000\n")
            .once("60000000"),
        busy("racket sleeps", &["racket", "-i"]).after(">", "(sleep 60)\n").once("(sleep 60)"),
        busy("iex sleeps", &["iex"]).after("iex(1)>", "Process.sleep(60000)\n").once("60000"),
        busy("erl sleeps", &["erl"]).after("1>", "timer:sleep(60000).\n").once("60000"),
        busy("swipl sleeps", &["swipl", "-q"]).after("?-", "sleep(60).\n").once("60"),
        busy("sbcl sleeps", &["sbcl", "--noinform", "--no-userinit"]).after("*", "(sleep 60)\n").once("60"),
        busy("clisp sleeps", &["clisp", "-q"]).after("[1]>", "(sleep 60)\n").once("60"),
        busy("octave pauses", &["octave-cli", "-q"]).after("octave:1>", "pause(60)\n").once("60"),
        busy("octave spins", &["octave-cli", "-q"]).after("octave:1>", "while (true) end\n").once("end"),
        busy("irb sleeps", &["irb", "--nocolorize"]).after("irb", "sleep 60\n").once("sleep 60"),
        busy("ipython sleeps", &["tools/asking/py/bin/ipython", "--no-banner"])
            .after("In [1]", "import time; time.sleep(60)\n")
            .once("60"),
        busy("ipython awaits", &["tools/asking/py/bin/ipython", "--no-banner"])
            .after("In [1]", "import asyncio; await asyncio.sleep(60)\n")
            .once("60"),
        busy("ptpython sleeps", &["tools/asking/py/bin/ptpython"])
            .after(">>>", "import time; time.sleep(60)\r")
            .once("60"),
        busy("node awaits", &["node"])
            .after(">", "await new Promise(r=>setTimeout(r,60000))\n")
            .once("60000"),
        busy("clojure sleeps", &["clojure"]).after("user=>", "(Thread/sleep 60000)\n").once("60000"),
        busy("gnuplot pauses", &["gnuplot"]).after("gnuplot>", "pause 60\n").once("60"),
        busy("maxima at work", &["maxima", "-q"]).after("(%i1)", "for i:1 thru 10^12 do x:i;\n").once("x:i"),
        busy("php sleeps", &["php", "-a"]).after("php >", "sleep(60);\n").once("60"),
        busy("zsh sleeps", &["zsh", "-f", "-i"]).after("#", "sleep 60\n").once("sleep 60").root(),
        busy("fish sleeps", &["fish", "--no-config"]).after("#", "sleep 60\n").once("sleep 60").root(),
        busy("gp at work", &["gp", "-q"]).after("?", "while(1,)\n").once("while"),
        busy("csharp sleeps", &["csharp"])
            .after("csharp>", "System.Threading.Thread.Sleep(60000);\n")
            .once("60000"),
        busy("tclsh after", &["tclsh"]).after("%", "after 60000\n").once("60000"),
        busy("lftp sleeps", &["lftp", "--norc"]).after("lftp", "sleep 60\n").once("sleep"),
    ]
}
