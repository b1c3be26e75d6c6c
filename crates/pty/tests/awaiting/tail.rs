//! The long tail: programs that were missed or mistaken once, each for a reason of its own.

use outlast_pty::evidence::InputKind::{Key, Line, Menu, Password, Repl};

use super::row::{Row, busy, certain, likely, listens};

pub(crate) fn rows() -> Vec<Row> {
    [narrow(), sets(), beam(), relays(), editors(), at_work(), signals(), kinds(), newlines(), rings()]
        .concat()
}

/// A 32-bit program without a library: gcc needs none to make it. The text is C between the braces of its start.
macro_rules! narrow {
    ($body:literal) => {
        &[
            "sh",
            "-c",
            concat!(
                "cat > a.c <<'E'\n",
                "static int c(int n,int a,int b,int d,int e,int f){int r;",
                "__asm__ volatile(\"int $0x80\":\"=a\"(r):\"a\"(n),\"b\"(a),\"c\"(b),\"d\"(d),\"S\"(e),\"D\"(f):\"memory\");return r;}\n",
                "void _start(void){char x[9];",
                $body,
                "c(1,0,0,0,0,0);}\nE\n",
                "gcc -m32 -nostdlib -static -fno-pie -no-pie -O1 -o a a.c && exec ./a"
            ),
        ]
    };
}

fn narrow() -> Vec<Row> {
    let rows = vec![
        certain("32-bit program reads", Line, narrow!("c(4,1,(int)\"Name: \",6,0,0);c(3,0,(int)x,9,0,0);")),
        likely(
            "32-bit program polls",
            Line,
            narrow!("int p[2]={0,1};c(4,1,(int)\"Name: \",6,0,0);c(168,(int)p,1,-1,0,0);"),
        ),
        likely(
            "32-bit program selects",
            Line,
            narrow!("int s[32]={1};c(4,1,(int)\"Name: \",6,0,0);c(142,1,(int)s,0,0,0);"),
        ),
        likely(
            "32-bit program polls with a timeout",
            Line,
            narrow!(
                "int p[2]={0,1};int t[2]={60,0};c(4,1,(int)\"Name: \",6,0,0);c(309,(int)p,1,(int)t,0,4);"
            ),
        )
        .uncertain(),
        busy(
            "32-bit program sleeps",
            narrow!("int t[2]={60,0};c(4,1,(int)\"Name: \",6,0,0);c(162,(int)t,0,0,0,0);"),
        )
        .once("Name:"),
        busy(
            "32-bit program waits for a futex",
            narrow!("int w=0;int t[2]={60,0};c(4,1,(int)\"Name: \",6,0,0);c(240,(int)&w,0,0,(int)t,0);"),
        )
        .once("Name:"),
    ];
    let rows = rows.into_iter().map(|row| row.needs(&["gcc"]));
    if cfg!(target_arch = "x86_64") { rows.collect() } else { Vec::new() }
}

fn sets() -> Vec<Row> {
    vec![
        likely(
            "the terminal is last in a set of 300",
            Line,
            &[
                "python3",
                "-c",
                "import os,select\ne=select.epoll()\nends=[os.pipe() for _ in range(300)]\nfor r,w in ends: e.register(r,1)\ne.register(0,1)\nprint('Name: ',end='',flush=True)\ne.poll()",
            ],
        ),
        likely(
            "the terminal is last of 200 to poll",
            Line,
            &[
                "python3",
                "-c",
                "import os,select\np=select.poll()\nends=[os.pipe() for _ in range(200)]\nt=os.dup2(0,900)\nfor r,w in ends: p.register(r,1)\np.register(900,1)\nprint('Name: ',end='',flush=True)\np.poll()",
            ],
        ),
        listens(
            "a server of 200 connections that takes keys",
            &[
                "python3",
                "-c",
                "import select,socket\ne=select.epoll()\ns=socket.create_server(('127.0.0.1',0))\nclients=[socket.create_connection(s.getsockname()) for _ in range(100)]\npeers=[s.accept()[0] for _ in range(100)]\nfor c in clients+peers: e.register(c,1)\ne.register(0,1)\nprint('up',flush=True)\ne.poll()",
            ],
        )
        .once("up"),
        likely(
            "racket",
            Repl,
            &["racket", "-i"],
        )
        .at_full_size(),
        likely("racket read-line", Line, &["racket", "-e", "(display \"Name: \") (flush-output) (read-line)"])
            .at_full_size(),
    ]
}

/// The Erlang machine polls the terminal always, whether or not anybody reads.
fn beam() -> Vec<Row> {
    let rows = vec![
        likely("erl", Repl, &["erl"]).once("1>"),
        likely("iex", Repl, &["iex"]).once("iex(1)>"),
        likely("elixir asks", Line, &["elixir", "-e", "IO.gets(\"Name: \")"]).once("Name:"),
        busy("elixir compiles", &["elixir", "-e", "IO.write(\"Compiling: \"); Process.sleep(60000)"])
            .once("Compiling"),
        busy("elixir sleeps", &["elixir", "-e", "IO.puts(\"up\"); Process.sleep(60000)"]).once("up"),
        busy(
            "erl compiles",
            &["erl", "-noshell", "-eval", "io:format(\"Compiling: \"), timer:sleep(60000)."],
        )
        .once("Compiling"),
    ];
    rows.into_iter().map(Row::at_full_size).collect()
}

fn relays() -> Vec<Row> {
    vec![
        busy("dtach, at work behind a colon", &["dtach", "-c", "s", "-z", "sh", "-c", "printf 'Name:'; sleep 60"])
            .once("Name:")
            .at_full_size(),
        likely("dtach, asking", Line, &["dtach", "-c", "s", "-z", "sh", "-c", "printf 'Name:'; read x"])
            .once("Name:")
            .at_full_size(),
        likely(
            "tmux, two panes, the active one asks",
            Menu,
            &[
                "sh",
                "-c",
                "tmux -f /dev/null -L two new-session -d 'sleep 60'; tmux -L two split-window \"printf 'Name: '; read x\"; exec tmux -L two attach",
            ],
        )
        .needs(&["tmux"])
        .once("Name:"),
        busy(
            "tmux, two panes, the active one works",
            &[
                "sh",
                "-c",
                "tmux -f /dev/null -L three new-session -d 'printf Name:; read x'; tmux -L three split-window \"echo working; sleep 60\"; exec tmux -L three attach",
            ],
        )
        .needs(&["tmux"])
        .once("working"),
    ]
}

fn editors() -> Vec<Row> {
    vec![
        likely(
            "emacs, while it compiles",
            Menu,
            &["emacs", "-nw", "-Q", "--eval", "(compile \"echo begun; sleep 60\")"],
        )
        .once("begun"),
        likely("emacs, in a shell", Menu, &["emacs", "-nw", "-Q", "--eval", "(shell)"]).once("*shell*"),
        likely("neovim", Menu, &["nvim", "-u", "NONE", "a.txt"]).at_full_size(),
    ]
}

/// It takes keys in a full screen, and something in it works.
macro_rules! screen_and {
    ($work:literal) => {
        &[
            "python3",
            "-c",
            concat!(
                "import curses,os,socket,subprocess,threading,time\n",
                "def main(s):\n",
                "  ",
                $work,
                "\n  s.addstr('at work'); s.refresh(); s.getch()\n",
                "curses.wrapper(main)"
            ),
        ]
    };
}

fn at_work() -> Vec<Row> {
    vec![
        listens("full screen, a child works", screen_and!("p=subprocess.Popen(['sh','-c','while :; do :; done'])"))
            .once("at work"),
        listens("full screen, a child sleeps", screen_and!("p=subprocess.Popen(['sleep','60'])")).once("at work"),
        listens(
            "full screen, a thread downloads",
            screen_and!("v=socket.create_server(('127.0.0.1',0)); c=socket.create_connection(v.getsockname()); threading.Thread(target=c.recv,args=(9,),daemon=True).start()"),
        )
        .once("at work"),
        listens(
            "full screen, a thread sleeps long",
            screen_and!("threading.Thread(target=time.sleep,args=(60,),daemon=True).start()"),
        )
        .once("at work"),
        likely("full screen, nothing works", Menu, screen_and!("pass")).once("at work"),
        likely(
            "full screen, an idle child",
            Menu,
            screen_and!("p=subprocess.Popen(['cat'],stdin=subprocess.PIPE)"),
        )
        .once("at work"),
    ]
}

/// A full screen whose program has a signal sent when somebody types, and sleeps elsewhere.
macro_rules! signalled {
    ($work:literal) => {
        &[
            "python3",
            "-c",
            concat!(
                "import fcntl,os,signal,socket,subprocess,threading,time,tty\n",
                "signal.signal(signal.SIGIO,lambda *a:None)\n",
                "fcntl.fcntl(0,fcntl.F_SETOWN,os.getpid()); tty.setraw(0)\n",
                "fcntl.fcntl(0,fcntl.F_SETFL,fcntl.fcntl(0,fcntl.F_GETFL)|os.O_ASYNC|os.O_NONBLOCK)\n",
                "os.write(1,b'\\x1b[?1049h\\x1b[Hone\\r\\ntwo'); ",
                $work,
                "\nwhile True: signal.pause()"
            ),
        ]
    };
}

fn signals() -> Vec<Row> {
    vec![
        likely("told of input by a signal", Menu, signalled!("pass")).uncertain().once("two"),
        listens(
            "told of input by a signal, a child works",
            signalled!("subprocess.Popen(['sh','-c','while :; do :; done'])"),
        )
        .once("two"),
        likely(
            "a prompt beside an interval timer",
            Line,
            &["python3", "-c", "import os,signal\nsignal.signal(signal.SIGALRM,lambda *a:None); signal.siginterrupt(signal.SIGALRM,False)\nsignal.setitimer(signal.ITIMER_REAL,0.01,0.01); os.write(1,b'Name: ')\nwhile True: os.read(0,9)"],
        )
        .once("Name:"),
        busy(
            "a full screen that nobody reads",
            &["sh", "-c", "stty raw -echo; printf '\\033[?1049h\\033[Hone\\r\\ntwo'; sleep 60"],
        )
        .once("two"),
    ]
}

/// Raw mode as a library sets it: no line editing, no echo, no signals.
macro_rules! raw {
    ($text:literal) => {
        &[
            "python3",
            "-c",
            concat!(
                "import os,sys,tty\nsys.stdout.write('",
                $text,
                "')\nsys.stdout.flush()\ntty.setraw(0)\nos.read(0,9)"
            ),
        ]
    };
}

fn kinds() -> Vec<Row> {
    vec![
        certain("a token in raw mode", Password, raw!("Token: ")),
        certain("a PIN in raw mode", Password, raw!("Enter PIN: ")),
        certain("an API key in raw mode", Password, raw!("? API key: ")),
        certain("a key out of three in raw mode", Key, raw!("Overwrite (a/b/c)? ")),
        certain("hit any key in raw mode", Key, raw!("Hit any key ")),
        certain("yes or no in raw mode", Key, raw!("Go on? [y/n] ")),
        certain("a library's question in raw mode", Line, raw!("? Project name: ")),
        certain("a list in raw mode", Menu, raw!("? Pick one (Use arrow keys)\\r\\n » a\\r\\n   b")),
        certain("a list with a pointer in raw mode", Menu, raw!("Pick:\\r\\n❯ a\\r\\n  b\\r\\n")),
        certain("a lone star", Repl, &["sh", "-c", "printf '* '; read x"]),
        certain("a question mark and a dash", Repl, &["sh", "-c", "printf '?- '; read x"]),
        likely("swipl", Repl, &["swipl", "-q"]).once("?-").at_full_size(),
        likely("sbcl", Repl, &["sbcl", "--noinform", "--no-sysinit", "--no-userinit"])
            .once("*")
            .at_full_size(),
        likely("gp", Repl, &["gp", "-q"]).once("?").at_full_size(),
        likely("ksh", Repl, &["ksh", "-i"]).at_full_size(),
        likely("redis-cli", Repl, &["redis-cli", "-p", "1"]).once("not connected>").at_full_size(),
    ]
}

/// A question that ended with a newline.
fn newlines() -> Vec<Row> {
    vec![
        certain("a question on a line of its own", Line, &["sh", "-c", "echo 'What is your name?'; read x"]),
        likely(
            "a question on a line of its own, beside a timer",
            Line,
            &[
                "python3",
                "-c",
                "import os,threading\nthreading.Thread(target=os.read,args=(0,9),daemon=True).start()\nprint('What is your name?',flush=True)\nwhile True: threading.Event().wait(.2)",
            ],
        )
        .uncertain(),
        listens(
            "no question on a line of its own, beside a timer",
            &[
                "python3",
                "-c",
                "import os,threading\nthreading.Thread(target=os.read,args=(0,9),daemon=True).start()\nprint('Working:',flush=True)\nwhile True: threading.Event().wait(.2)",
            ],
        ),
    ]
}

/// One thread reads the terminal, and another waits for a ring of io_uring.
macro_rules! ring {
    ($text:literal) => {
        &[
            "python3",
            "-c",
            concat!(
                "import ctypes,os,threading\ncall=ctypes.CDLL(None).syscall\n",
                "ring=call(425,4,ctypes.create_string_buffer(120))\nassert ring>0\n",
                "threading.Thread(target=os.read,args=(0,9),daemon=True).start()\n",
                "print('",
                $text,
                "',end='',flush=True)\ncall(426,ring,0,1,1,None,0)"
            ),
        ]
    };
}

fn rings() -> Vec<Row> {
    let allowed = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    if !cfg!(target_arch = "x86_64") || !allowed.is_ok_and(|text| text.trim() == "0") {
        return Vec::new();
    }
    vec![
        likely("a prompt beside io_uring", Line, ring!("Name: ")).uncertain(),
        listens("no prompt beside io_uring", ring!("")),
    ]
}
