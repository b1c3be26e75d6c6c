//! Programs that must never be called waiting: at work, asleep, stopped, or listening to others as well.

use super::row::{Row, busy, listens, stopped};

pub(crate) fn rows() -> Vec<Row> {
    [
        asleep(),
        at_work(),
        waiting_for_others(),
        after_input(),
        looks_like_a_prompt(),
        relays(),
        stops(),
        listening(),
    ]
    .concat()
}

fn asleep() -> Vec<Row> {
    vec![
        busy("sleep", &["sleep", "60"]),
        busy("sh sleeps", &["sh", "-c", "sleep 60; echo"]),
        busy("sh waits for a child", &["sh", "-c", "sleep 60 & wait"]),
        busy("perl sleeps", &["perl", "-e", "sleep 60"]),
        busy("python sleeps", &["python3", "-c", "import time; time.sleep(60)"]),
        busy("python sleeps in select", &["python3", "-c", "import select; select.select([],[],[],60)"]),
        busy("python sleeps in poll", &["python3", "-c", "import select; select.poll().poll(60000)"]),
        busy("python sleeps in epoll", &["python3", "-c", "import select; select.epoll().poll(60)"]),
        busy("python asyncio sleeps", &["python3", "-c", "import asyncio; asyncio.run(asyncio.sleep(60))"]),
        busy("python sigwait", &["python3", "-c", "import signal; signal.sigwait([signal.SIGUSR1])"]),
        busy("python pause", &["python3", "-c", "import signal; signal.pause()"]),
        busy("python event", &["python3", "-c", "import threading; threading.Event().wait(60)"]),
        busy("python lock", &["python3", "-c", "import threading; l=threading.Lock(); l.acquire(); l.acquire()"]),
        busy("python timer loop", &["python3", "-c", "import time\nwhile True: time.sleep(.05)"]),
        busy("python interval timer", &["python3", "-c", "import signal\nsignal.signal(signal.SIGALRM,lambda *a:None); signal.setitimer(0,.1,.1)\nwhile True: signal.pause()"]),
        busy("node sleeps", &["node", "-e", "setTimeout(()=>{},60000)"]),
        busy("java sleeps", &["sh", "-c", "echo 'class A{public static void main(String[] a)throws Exception{Thread.sleep(60000);}}' > A.java; exec java A.java"]).needs(&["java"]),
        busy("setsid sleep", &["setsid", "-w", "sleep", "60"]),
        busy("timeout sleep", &["timeout", "60", "sleep", "60"]),
        busy("flock waits", &["sh", "-c", "exec 9>l; flock 9; flock l echo"]).needs(&["flock"]),
    ]
}

fn at_work() -> Vec<Row> {
    vec![
        busy("sh spins", &["sh", "-c", "while :; do :; done"]),
        busy("python spins", &["python3", "-c", "while True: pass"]),
        busy("node spins", &["node", "-e", "while(1);"]),
        busy("awk spins", &["awk", "BEGIN{while(1);}"]),
        busy("yes", &["sh", "-c", "yes > /dev/null"]),
        busy("dd zeroes", &["dd", "if=/dev/zero", "of=/dev/null"]),
        busy("find / again and again", &["sh", "-c", "while :; do find /usr >/dev/null 2>&1; done"]),
        busy(
            "compile again and again",
            &["sh", "-c", "while :; do echo 'int main(){return 0;}' | gcc -O2 -xc - -o a; done"],
        )
        .needs(&["gcc"]),
        busy(
            "make at work",
            &["sh", "-c", "printf 'all: a b\\na b:\\n\\tsleep 60\\n' > Makefile; exec make -j2"],
        )
        .needs(&["make"]),
        busy("openssl speed", &["openssl", "speed", "-seconds", "20", "sha256"]),
        busy("git gc loop", &["sh", "-c", "git init -q; while :; do git gc -q; done"]).needs(&["git"]),
        busy("prints a dot now and then", &["sh", "-c", "while :; do printf .; sleep 0.2; done"]),
        busy("prints a line now and then", &["sh", "-c", "while :; do date; sleep 0.3; done"]),
        busy(
            "progress bar",
            &["sh", "-c", "i=0; while :; do printf '\\r%d%%' $i; i=$((i+1)); sleep 0.25; done"],
        ),
        busy(
            "sqlite at work",
            &[
                "sqlite3",
                ":memory:",
                "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c",
            ],
        ),
        busy("watch", &["watch", "-n", "1", "date"]),
        busy("sort of endless input", &["sh", "-c", "yes | sort -o /dev/null"]),
    ]
}

fn waiting_for_others() -> Vec<Row> {
    vec![
        busy("tail -f", &["sh", "-c", "echo a > f; exec tail -f f"]),
        busy("tail -f /dev/null", &["tail", "-f", "/dev/null"]),
        busy("cat of a fifo", &["sh", "-c", "mkfifo f; cat f"]),
        busy("read from a fifo", &["sh", "-c", "mkfifo f; printf 'Name: '; read x < f"]),
        busy("producer sleeps", &["sh", "-c", "sleep 60 | cat"]),
        busy("producer of a pager sleeps", &["sh", "-c", "(seq 5; sleep 60) | sort"]),
        busy("python http.server", &["python3", "-m", "http.server", "--bind", "127.0.0.1", "0"]),
        busy("node http", &["node", "-e", "require('http').createServer().listen(0,'127.0.0.1',()=>console.log('ready'))"]),
        busy("python accepts", &["python3", "-c", "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); s.accept()"]),
        busy("python receives", &["python3", "-c", "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); c=socket.create_connection(s.getsockname()); print('reply: ',end='',flush=True); c.recv(9)"]),
        busy("python reads a socket pair", &["python3", "-c", "import socket,os,time\na,b=socket.socketpair()\nif os.fork()==0: time.sleep(60)\nprint('> ',end='',flush=True); a.recv(9)"]),
        busy("python asyncio server", &["python3", "-c", "import asyncio\nasync def m():\n  s=await asyncio.start_server(lambda r,w:None,'127.0.0.1',0); await s.serve_forever()\nasyncio.run(m())"]),
        busy("python runs sleep", &["python3", "-c", "import subprocess; subprocess.run(['sleep','60'])"]),
        busy("python reads a child's pipe", &["python3", "-c", "import subprocess; print('? ',end='',flush=True); subprocess.check_output(['sleep','60'])"]),
        busy("python queue", &["python3", "-c", "import queue; queue.Queue().get()"]),
        busy("python multiprocessing", &["python3", "-c", "import multiprocessing as m,time\np=m.Pool(2); p.map(time.sleep,[60,60])"]),
        busy("inotify", &["sh", "-c", "touch f; exec tail -F f"]),
        busy("java server", &["sh", "-c", "echo 'class A{public static void main(String[] a)throws Exception{System.out.println(1);new java.net.ServerSocket(0).accept();}}' > A.java; exec java A.java"]).needs(&["java"]),
        busy("less +F", &["sh", "-c", "seq 9 > f; exec less +F f"]).needs(&["less"]),
        busy("xargs waits for its pipe", &["sh", "-c", "sleep 60 | xargs echo"]),
    ]
}

fn after_input() -> Vec<Row> {
    vec![
        busy("bash -i runs sleep", &["bash", "--norc", "-i"]).after("bash-", "sleep 60\n"),
        busy("bash -i spins", &["bash", "--norc", "-i"]).after("bash-", "while :; do :; done\n"),
        busy("python repl sleeps", &["python3", "-q"]).after(">>>", "import time; time.sleep(60)\n"),
        busy("python repl spins", &["python3", "-q"]).after(">>>", "while 1: pass\n").after("...", "\n"),
        busy("node repl spins", &["node"]).after(">", "while(1);\n"),
        busy("gdb runs sleep", &["gdb", "-q", "-nx", "--args", "sleep", "60"]).after("(gdb)", "run\n"),
        busy("vim runs sleep", &["vim", "-u", "NONE", "-n", "f"]).after("~", ":!sleep 60\r"),
        busy("password, then work", &["bash", "-c", "read -s -p 'Password: ' x; sleep 60"])
            .after("Password", "x\n"),
        busy("y/n, then work", &["bash", "-c", "read -p 'Go on? (y/n) ' x; sleep 60"]).after("y/n", "y\n"),
        busy("jshell sleeps", &["jshell"]).after("jshell>", "Thread.sleep(60000)\n"),
        busy("sqlite repl at work", &["sqlite3"]).after(
            "sqlite>",
            "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c;\n",
        ),
        busy("tclsh sleeps", &["tclsh"]).after("%", "after 60000\n"),
        busy("perl debugger sleeps", &["perl", "-de0"]).after("DB<", "sleep 60\n"),
    ]
}

fn looks_like_a_prompt() -> Vec<Row> {
    vec![
        busy("y/n printed, then sleep", &["sh", "-c", "printf 'Continue? (y/n) '; sleep 60"]),
        busy("password printed, then sleep", &["sh", "-c", "printf 'Password: '; sleep 60"]),
        busy("echo off, then sleep", &["sh", "-c", "stty -echo; printf 'Password: '; sleep 60"]),
        busy("press enter printed, then work", &["sh", "-c", "printf 'Press ENTER '; while :; do :; done"]),
        busy("shell prompt printed, then sleep", &["sh", "-c", "printf '$ '; sleep 60"]),
        busy(
            "repl prompt printed, then sleep",
            &["python3", "-c", "import time; print('>>> ',end='',flush=True); time.sleep(60)"],
        ),
        busy("raw mode, then sleep", &["sh", "-c", "stty raw -echo; printf 'Pick: '; sleep 60"]),
        busy(
            "alternate screen, then sleep",
            &["sh", "-c", "stty -icanon -echo; printf '\\033[?1049hPick: '; sleep 60"],
        ),
        busy("bracketed paste, then sleep", &["sh", "-c", "printf '\\033[?2004h> '; sleep 60"]),
        busy("pytest collects", &["sh", "-c", "printf 'collecting ... '; sleep 60"]),
        busy(
            "downloads with a question mark",
            &[
                "python3",
                "-c",
                "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); c=socket.create_connection(s.getsockname()); print('ready? ',end='',flush=True); import select; select.select([c],[],[],60)",
            ],
        ),
        busy(
            "prompt before a node timer",
            &["node", "-e", "process.stdout.write('Name? ');setInterval(()=>{},100)"],
        ),
    ]
}

fn relays() -> Vec<Row> {
    vec![
        busy("script: sleep", &["script", "-qc", "sleep 60", "/dev/null"]),
        busy("script: prompt, then sleep", &["script", "-qc", "printf 'Name: '; sleep 60", "/dev/null"]),
        busy("script: spins", &["script", "-qc", "while :; do :; done", "/dev/null"]),
        busy(
            "tmux: sleep",
            &["tmux", "-L", "t", "-f", "/dev/null", "new-session", "printf 'Name: '; sleep 60"],
        ),
        busy("python pty.spawn sleeps", &["python3", "-c", "import pty; pty.spawn(['sleep','60'])"]),
        busy("expect waits for its child", &["expect", "-c", "set timeout 60; spawn cat; expect never"]),
        busy("sudo sleep", &["sudo", "-n", "sleep", "60"]).root(),
        busy(
            "bwrap sleep",
            &["bwrap", "--dev-bind", "/", "/", "--new-session", "sh", "-c", "printf 'Name: '; sleep 60"],
        ),
    ]
}

fn stops() -> Vec<Row> {
    vec![
        stopped("stops itself", &["sh", "-c", "kill -STOP $$"]),
        stopped("timeout in the background reads", &["sh", "-c", "timeout 60 cat"]).needs(&["timeout"]),
        stopped("stopped in a read", &["python3", "-c", "import os,signal,sys\nparent=os.getpid()\nif os.fork()==0:\n  import time; time.sleep(.3); os.kill(parent,signal.SIGSTOP); os._exit(0)\nsys.stdin.readline()"]).once(""),
    ]
}

fn listening() -> Vec<Row> {
    vec![
        listens("cat | sleep", &["sh", "-c", "cat | sleep 60"]),
        listens("sleeper beside a read without a prompt", &["sh", "-c", "sleep 60 & read x"]),
        listens(
            "python select on stdin and server",
            &[
                "python3",
                "-c",
                "import select,socket\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); print('ready'); select.select([0,s],[],[])",
            ],
        ),
        listens(
            "python asyncio server and stdin",
            &[
                "python3",
                "-c",
                "import asyncio\nasync def m():\n  asyncio.get_running_loop().add_reader(0,lambda:None)\n  s=await asyncio.start_server(lambda r,w:None,'127.0.0.1',0); print('press h + enter to show help'); await s.serve_forever()\nasyncio.run(m())",
            ],
        ),
        listens(
            "node dev server",
            &[
                "node",
                "-e",
                "process.stdin.on('data',()=>{});require('http').createServer().listen(0,'127.0.0.1',()=>console.log('  press h + enter to show help'))",
            ],
        ),
        listens(
            "node dev server without newline",
            &[
                "node",
                "-e",
                "process.stdin.on('data',()=>{});require('http').createServer().listen(0,'127.0.0.1',()=>process.stdout.write('press h + enter to show help'))",
            ],
        ),
        listens(
            "node watcher",
            &[
                "node",
                "-e",
                "process.stdin.on('data',()=>{});require('fs').watch('.');console.log('Waiting for file changes before starting...')",
            ],
        ),
        listens(
            "python server thread beside input",
            &[
                "python3",
                "-c",
                "import threading,http.server,sys\ns=http.server.HTTPServer(('127.0.0.1',0),http.server.SimpleHTTPRequestHandler)\nthreading.Thread(target=s.serve_forever,daemon=True).start()\nprint('serving'); sys.stdin.readline()",
            ],
        ),
        listens(
            "python timer without text",
            &[
                "python3",
                "-c",
                "import select\nprint('working')\nwhile not select.select([0],[],[],.1)[0]: pass",
            ],
        ),
        listens(
            "python relays a socket",
            &[
                "python3",
                "-c",
                "import select,socket\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); c=socket.create_connection(s.getsockname()); print('connected'); select.select([0,c],[],[])",
            ],
        ),
        listens(
            "python stdin and child's pipe",
            &[
                "python3",
                "-c",
                "import select,subprocess\np=subprocess.Popen(['sleep','60'],stdout=-1); print('building'); select.select([0,p.stdout],[],[])",
            ],
        ),
    ]
}
