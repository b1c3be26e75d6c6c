//! Programs that wait for somebody to type.

use outlast_pty::evidence::InputKind::{Key, Line, Menu, Pager, Password, Repl};

use super::row::{Row, certain, likely};

pub(crate) fn rows() -> Vec<Row> {
    [
        shells(),
        filters(),
        python(),
        python_processes_and_threads(),
        python_loops(),
        python_event_loops(),
        node(),
        interpreters(),
        editors_and_pagers(),
    ]
    .concat()
}

fn shells() -> Vec<Row> {
    vec![
        certain("sh read", Line, &["sh", "-c", "read x"]),
        certain("sh read after a prompt", Line, &["sh", "-c", "printf 'Name: '; read x"]),
        certain("dash read", Line, &["dash", "-c", "read x"]),
        certain("bash read -p", Line, &["bash", "-c", "read -p 'Name: ' x"]),
        certain("bash read -s", Password, &["bash", "-c", "read -s -p 'Password: ' x"]),
        certain("bash read -n1", Key, &["bash", "-c", "read -n1 -p 'Continue? ' x"]),
        likely("bash read -t", Line, &["bash", "-c", "read -t 60 -p 'Name: ' x"]),
        likely("bash read -e", Line, &["bash", "-c", "read -e -p 'Edit: ' x"]),
        certain("bash select menu", Line, &["bash", "-c", "select x in one two; do echo $x; done"]),
        likely("bash -i", Repl, &["bash", "--norc", "--noprofile", "-i"]),
        certain("sh -i", Repl, &["dash", "-i"]),
        certain("read in a loop", Line, &["bash", "-c", "while read -p 'next: ' x; do sleep 0.2; done"])
            .after("next:", "a\n"),
        certain("sleep, then read", Line, &["sh", "-c", "sleep 1; read x"]),
        certain("subshell reads", Line, &["sh", "-c", "(read x; echo $x); echo"]),
        certain("read from /dev/tty", Line, &["sh", "-c", "read x </dev/tty"]),
        certain("echo off by hand", Password, &["sh", "-c", "stty -echo; printf 'Secret: '; read x"]),
        likely("background sleeper, prompt", Line, &["sh", "-c", "sleep 60 & printf 'Name: '; read x"])
            .uncertain(),
        certain("bash after a command", Line, &["bash", "-c", "ls / >/dev/null; read -p 'ok? ' x"]),
        likely("bash -i with a background job", Repl, &["bash", "--norc", "-i"])
            .after("bash-", "sleep 60 &\n"),
        certain("y/n question", Line, &["sh", "-c", "printf 'Continue? (y/n) '; read x"]),
        certain(
            "prompt with a newline",
            Line,
            &["sh", "-c", "echo 'Type something and press enter'; read x"],
        ),
        certain("cat behind a prompt", Repl, &["sh", "-c", "printf 'data> ' >&2; exec cat >/dev/null"]),
        likely("zsh -i", Repl, &["zsh", "-f", "-i"]),
        likely("fish", Repl, &["fish", "--no-config"]),
        certain(
            "make recipe reads",
            Line,
            &["sh", "-c", "printf 'all:\\n\\t@read x\\n' > Makefile; exec make"],
        )
        .needs(&["make"]),
    ]
}

fn filters() -> Vec<Row> {
    vec![
        certain("cat", Line, &["cat"]),
        certain("cat after a line", Line, &["cat"]).after("", "hello\n"),
        certain("sort", Line, &["sort"]),
        certain("tr", Line, &["tr", "a", "b"]),
        certain("sed", Line, &["sed", "s/a/b/"]),
        certain("awk", Line, &["awk", "{print}"]),
        certain("dd", Line, &["dd", "of=/dev/null"]),
        certain("tee", Line, &["tee", "/dev/null"]),
        certain("wc", Line, &["wc"]),
        certain("head", Line, &["head"]),
        certain("tail", Line, &["tail"]),
        certain("grep", Line, &["grep", "x"]),
        certain("xargs", Line, &["xargs", "echo"]),
        certain("md5sum", Line, &["md5sum"]),
        certain("base64", Line, &["base64"]),
        certain("gzip", Line, &["sh", "-c", "exec gzip -c >/dev/null"]).needs(&["gzip"]),
        certain("cat | sort", Line, &["sh", "-c", "cat | sort"]),
        certain("cat | wc | sort", Line, &["sh", "-c", "cat | wc | sort"]),
        certain("nice env cat", Line, &["nice", "env", "cat"]),
        certain("stdbuf cat", Line, &["stdbuf", "-o0", "cat"]),
        likely("timeout --foreground cat", Line, &["timeout", "--foreground", "60", "cat"]).uncertain(),
        certain("strace cat", Line, &["strace", "-o", "/dev/null", "cat"]),
        likely("setsid cat", Line, &["setsid", "-w", "cat"]),
        certain("unshare cat", Line, &["unshare", "-pf", "cat"]).root(),
        likely("bc", Repl, &["bc", "-q"]).needs(&["bc"]),
        certain("ed", Line, &["ed", "-v"]),
        certain("ed with a prompt", Repl, &["ed", "-p", "*> "]),
    ]
}

fn python() -> Vec<Row> {
    vec![
        likely("python input", Line, &["python3", "-c", "input('Name: ')"]),
        likely("python input with readline", Line, &["python3", "-c", "import readline; input('Name: ')"]),
        certain("python getpass", Password, &["python3", "-c", "import getpass; getpass.getpass()"]),
        likely("python repl", Repl, &["python3", "-q", "-i"]),
        likely("python repl after a line", Repl, &["python3", "-q"]).after(">>>", "1+1\n"),
        likely("python repl continues", Repl, &["python3", "-q"]).after(">>>", "def f():\n"),
        certain(
            "python repl without readline",
            Repl,
            &[
                "python3",
                "-q",
                "-S",
                "-E",
                "-c",
                "import sys\nwhile True:\n  sys.stdout.write('>>> '); sys.stdout.flush(); sys.stdin.readline()",
            ],
        ),
        certain("python stdin.read", Line, &["python3", "-c", "import sys; sys.stdin.read()"]),
        likely("python pdb", Repl, &["python3", "-c", "import pdb; pdb.set_trace(); print(1)"]),
        likely(
            "python code.interact",
            Repl,
            &["python3", "-c", "import code; code.interact(banner='', local={})"],
        ),
        certain(
            "python raw key",
            Key,
            &["python3", "-c", "import tty,sys; tty.setraw(0); sys.stdin.read(1)"],
        ),
        certain(
            "python cbreak key",
            Key,
            &[
                "python3",
                "-c",
                "import tty,sys; tty.setcbreak(0); sys.stdout.write('Press any key'); sys.stdout.flush(); sys.stdin.read(1)",
            ],
        ),
        likely(
            "python curses",
            Menu,
            &[
                "python3",
                "-c",
                "import curses\ncurses.wrapper(lambda s: (s.addstr(2,2,'Pick'), s.refresh(), s.getch()))",
            ],
        ),
        likely(
            "python curses with a timeout",
            Menu,
            &[
                "python3",
                "-c",
                "import curses\ndef f(s):\n  s.addstr(2,2,'Pick'); s.timeout(400)\n  while s.getch()!=113: pass\ncurses.wrapper(f)",
            ],
        ),
    ]
}

fn python_processes_and_threads() -> Vec<Row> {
    vec![
        certain("python child reads", Line, &["python3", "-c", "import subprocess; subprocess.run(['cat'])"]),
        certain(
            "python forks its reader",
            Line,
            &["python3", "-c", "import os,sys\nif os.fork()==0: sys.stdin.readline()\nelse: os.wait()"],
        ),
        certain(
            "python double fork reads",
            Line,
            &[
                "python3",
                "-c",
                "import os,sys\nif os.fork()==0:\n  if os.fork()==0: sys.stdin.readline()\n  os._exit(0) if False else os.wait()\nelse: os.wait()",
            ],
        ),
        certain(
            "python shell=True reads",
            Line,
            &["python3", "-c", "import subprocess; subprocess.run('read x', shell=True)"],
        ),
        likely(
            "python reader in a thread",
            Line,
            &[
                "python3",
                "-c",
                "import threading,sys\nt=threading.Thread(target=sys.stdin.readline); t.start(); t.join()",
            ],
        ),
        likely(
            "python parked threads beside input",
            Line,
            &[
                "python3",
                "-c",
                "import threading\ne=threading.Event()\n[threading.Thread(target=e.wait,daemon=True).start() for _ in range(4)]\ninput('Name: ')",
            ],
        ),
        likely(
            "python sleeping thread beside input",
            Line,
            &[
                "python3",
                "-c",
                "import threading,time\nthreading.Thread(target=lambda:time.sleep(99),daemon=True).start()\ninput('Name: ')",
            ],
        ),
        likely(
            "python server thread beside a prompt",
            Line,
            &[
                "python3",
                "-c",
                "import threading,http.server\ns=http.server.HTTPServer(('127.0.0.1',0),http.server.SimpleHTTPRequestHandler)\nthreading.Thread(target=s.serve_forever,daemon=True).start()\ninput('Stop? (y/n) ')",
            ],
        ),
        certain(
            "python compute, then input",
            Line,
            &[
                "python3",
                "-c",
                "import sys\nfor i in range(10**7): pass\nsys.stdout.write('Name: '); sys.stdout.flush(); sys.stdin.readline()",
            ],
        ),
        likely("pyrepl", Repl, &["sh", "-c", "PYENV_VERSION=3.13.0 exec python3.13 -q"])
            .needs(&["python3.13"])
            .once(">>>"),
        likely("ipython", Repl, &["ipython", "--no-banner", "--no-confirm-exit"]),
    ]
}

fn python_loops() -> Vec<Row> {
    vec![
        likely("python select", Line, &["python3", "-c", "import select; select.select([0],[],[])"]),
        likely(
            "python select with a timeout",
            Line,
            &[
                "python3",
                "-c",
                "import select,sys\nsys.stdout.write('Name: '); sys.stdout.flush()\nwhile not select.select([0],[],[],0.3)[0]: pass",
            ],
        ),
        likely(
            "python poll",
            Line,
            &["python3", "-c", "import select\np=select.poll(); p.register(0,select.POLLIN); p.poll()"],
        ),
        likely(
            "python epoll",
            Line,
            &["python3", "-c", "import select\np=select.epoll(); p.register(0,select.EPOLLIN); p.poll()"],
        ),
        likely(
            "python nested epoll",
            Line,
            &[
                "python3",
                "-c",
                "import select\np=select.epoll(); p.register(0,select.EPOLLIN); q=select.epoll(); q.register(p.fileno(),select.EPOLLIN); q.poll()",
            ],
        ),
        likely(
            "python epoll in poll",
            Line,
            &[
                "python3",
                "-c",
                "import select\np=select.epoll(); p.register(0,select.EPOLLIN); q=select.poll(); q.register(p.fileno(),1); q.poll()",
            ],
        ),
        likely(
            "python epoll in select",
            Line,
            &[
                "python3",
                "-c",
                "import select\np=select.epoll(); p.register(0,select.EPOLLIN); select.select([p],[],[])",
            ],
        ),
        likely(
            "python adds its terminal to a set in use",
            Line,
            &[
                "python3",
                "-c",
                "import select,threading,time,os\ne=select.epoll(); r,w=os.pipe(); e.register(r,1)\nt=threading.Thread(target=e.poll); t.start(); time.sleep(1.5)\nprint('Name: ',end='',flush=True); e.register(0,1); t.join()",
            ],
        )
        .once("Name:"),
        likely(
            "python poll and self-pipe",
            Line,
            &[
                "python3",
                "-c",
                "import select,os\nr,w=os.pipe(); p=select.poll(); p.register(0,1); p.register(r,1); p.poll()",
            ],
        ),
        likely(
            "python poll and socket pair",
            Line,
            &[
                "python3",
                "-c",
                "import select,socket\na,b=socket.socketpair(); p=select.poll(); p.register(0,1); p.register(a,1); p.poll()",
            ],
        ),
        likely(
            "python poll and eventfd",
            Line,
            &[
                "python3",
                "-c",
                "import select,os\ne=os.eventfd(0); p=select.poll(); p.register(0,1); p.register(e,1); p.poll()",
            ],
        ),
    ]
}

fn python_event_loops() -> Vec<Row> {
    vec![
        likely(
            "python asyncio reader",
            Line,
            &[
                "python3",
                "-c",
                "import asyncio,sys\nasync def m():\n  asyncio.get_running_loop().add_reader(0,lambda:None); await asyncio.Event().wait()\nasyncio.run(m())",
            ],
        ),
        likely(
            "python asyncio reader with ticks",
            Line,
            &[
                "python3",
                "-c",
                "import asyncio\nasync def m():\n  asyncio.get_running_loop().add_reader(0,lambda:None)\n  print('Name: ',end='',flush=True)\n  while True: await asyncio.sleep(.3)\nasyncio.run(m())",
            ],
        ),
        likely(
            "python input in an executor",
            Line,
            &[
                "python3",
                "-c",
                "import asyncio\nasync def m(): await asyncio.get_running_loop().run_in_executor(None,input,'Name: ')\nasyncio.run(m())",
            ],
        ),
        likely(
            "python poll restarted after a stop",
            Line,
            &[
                "python3",
                "-c",
                "import os,select,signal,time,sys\nparent=os.getpid()\nif os.fork()==0:\n  time.sleep(.4); os.kill(parent,signal.SIGSTOP); time.sleep(.2); os.kill(parent,signal.SIGCONT); os._exit(0)\nprint('Name: ',end='',flush=True)\np=select.poll(); p.register(0,1); p.poll(60000)",
            ],
        ),
        likely(
            "python poll on fifo opened both ways",
            Line,
            &[
                "python3",
                "-c",
                "import os,select\nos.mkfifo('f'); f=os.open('f',os.O_RDWR); p=select.poll(); p.register(0,1); p.register(f,1); p.poll()",
            ],
        ),
        likely(
            "prompt beside a socket",
            Line,
            &[
                "python3",
                "-c",
                "import select,socket\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\nprint('login: ',end='',flush=True); select.select([0,s],[],[])",
            ],
        ),
    ]
}

fn node() -> Vec<Row> {
    vec![
        likely("node repl", Repl, &["node"]),
        likely("node repl after a line", Repl, &["node"]).after(">", "1+1\n"),
        likely(
            "node question",
            Line,
            &[
                "node",
                "-e",
                "require('readline').createInterface({input:process.stdin,output:process.stdout}).question('Name? ',()=>{})",
            ],
        ),
        likely(
            "node question with a ticking clock",
            Line,
            &[
                "node",
                "-e",
                "setInterval(()=>{},200);require('readline').createInterface({input:process.stdin,output:process.stdout}).question('Name? ',()=>{})",
            ],
        ),
        likely(
            "node y/n question",
            Key,
            &[
                "node",
                "-e",
                "require('readline').createInterface({input:process.stdin,output:process.stdout}).question('Sure? (y/n) ',()=>{})",
            ],
        ),
        likely(
            "node raw key",
            Key,
            &["node", "-e", "process.stdin.setRawMode(true);process.stdin.once('data',()=>process.exit())"],
        ),
        likely("node data", Line, &["node", "-e", "process.stdin.on('data',()=>{})"]),
        certain("node readSync", Line, &["node", "-e", "require('fs').readSync(0,Buffer.alloc(9))"]),
        likely(
            "node hidden menu",
            Menu,
            &[
                "node",
                "-e",
                "process.stdin.setRawMode(true);process.stdin.resume();process.stdout.write('\\x1b[?25lPick:\\n> a\\n  b\\n')",
            ],
        ),
        likely(
            "node prompt beside a server",
            Repl,
            &[
                "node",
                "-e",
                "require('http').createServer().listen(0,'127.0.0.1',()=>{require('readline').createInterface({input:process.stdin,output:process.stdout,prompt:'cmd> '}).prompt()})",
            ],
        ),
        likely("npm init", Line, &["npm", "init"]).once("package name"),
    ]
}

fn interpreters() -> Vec<Row> {
    vec![
        likely("gdb", Repl, &["gdb", "-q", "-nx"]),
        likely("gdb after a command", Repl, &["gdb", "-q", "-nx"]).after("(gdb)", "p 1\n"),
        certain("perl reads", Line, &["perl", "-e", "print 'Name: '; $|=1; print ''; <STDIN>"]),
        certain("perl -ne", Line, &["perl", "-ne", "print"]),
        likely("perl debugger", Repl, &["perl", "-de0"]).once("DB<"),
        certain("tclsh", Repl, &["tclsh"]),
        certain("tclsh gets", Line, &["sh", "-c", "echo 'puts -nonewline \"Name: \"; flush stdout; gets stdin' > a.tcl; exec tclsh a.tcl"]).needs(&["tclsh"]),
        likely("tclsh event loop", Line, &["sh", "-c", "echo 'fileevent stdin readable {gets stdin}; vwait forever' > a.tcl; exec tclsh a.tcl"]).needs(&["tclsh"]),
        likely("sqlite3", Repl, &["sqlite3", "-interactive"]),
        likely("jshell", Repl, &["jshell"]).once("jshell>"),
        likely("java Scanner", Line, &["sh", "-c", "echo 'class A{public static void main(String[] a){System.out.print(\"Name: \");new java.util.Scanner(System.in).nextLine();}}' > A.java; exec java A.java"]).needs(&["java"]).once("Name:"),
        likely("java console password", Password, &["sh", "-c", "echo 'class A{public static void main(String[] a){System.console().readPassword(\"Password: \");}}' > A.java; exec java A.java"]).needs(&["java"]).once("Password:"),
        certain("awk getline", Line, &["awk", "BEGIN{printf \"Name: \"; getline x < \"-\"}"]).once("Name"),
        likely("ruby irb", Repl, &["irb"]),
        likely("lua", Repl, &["lua"]),
        likely("php -a", Repl, &["php", "-a"]),
        certain("dc", Line, &["dc"]),
        certain("m4", Line, &["m4"]),
        likely("guile", Repl, &["guile", "-q"]).once("guile"),
        certain("ocaml", Repl, &["ocaml", "-noinit"]),
        likely("ghci", Repl, &["ghci"]).at_full_size(),
    ]
}

fn editors_and_pagers() -> Vec<Row> {
    vec![
        likely("vim", Menu, &["vim", "-u", "NONE", "-n", "f"]),
        likely("vim insert mode", Menu, &["vim", "-u", "NONE", "-n", "f"]).after("~", "ihello"),
        likely("vi -R", Menu, &["vi", "-u", "NONE", "-R", "/etc/passwd"]),
        certain("less", Pager, &["less", "/proc/self/status"]).once("status"),
        certain("less on a pipe", Pager, &["sh", "-c", "seq 500 | less"]).needs(&["less", "seq"]).once("29"),
        certain("less -X", Pager, &["sh", "-c", "seq 500 > f; exec less -X f"]).needs(&["less"]).once("29"),
        likely("more", Pager, &["sh", "-c", "seq 500 > f; exec more f"]).needs(&["more"]).once("More"),
        likely("git log pages", Pager, &["sh", "-c", "git init -q; for i in $(seq 40); do git -c user.name=a -c user.email=a@b commit -q --allow-empty -m $i; done; LESS=R exec git log"]).needs(&["git", "less"]).once("commit"),
        likely("man pages", Pager, &["man", "ls"]).once("Manual page"),
        likely("nano", Menu, &["nano", "-I", "f"]),
        likely("git commit opens an editor", Menu, &["sh", "-c", "git init -q; EDITOR='vim -u NONE -n' exec git -c user.name=a -c user.email=a@b commit --allow-empty"]).needs(&["git", "vim"]).once("COMMIT_EDITMSG"),
        likely("micro", Menu, &["micro", "f"]),
        likely("whiptail", Menu, &["whiptail", "--yesno", "Go on?", "10", "40"]),
        likely("dialog", Menu, &["dialog", "--yesno", "Go on?", "10", "40"]),
        likely("fzf", Menu, &["sh", "-c", "seq 50 | fzf"]).needs(&["fzf", "seq"]).once("50/50"),
        likely("mc", Menu, &["mc", "-u", "-d"]),
        likely("htop", Menu, &["htop", "-d", "50"]).once("Help"),
        likely("emacs -nw", Menu, &["emacs", "-nw", "-Q"]).once("scratch"),
    ]
}
