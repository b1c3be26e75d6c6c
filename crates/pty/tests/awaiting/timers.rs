//! Programs that go on by a clock, whoever types: beside a reader, and with what they show while they work.

use outlast_pty::evidence::InputKind::{Line, Menu};

use super::row::{Row, busy, likely, listens};

pub(crate) fn rows() -> Vec<Row> {
    [beside_a_reader(), in_other_processes(), at_work(), asking()].concat()
}

/// One thread reads the terminal, and another sits in this call, again and again.
macro_rules! reader_and {
    ($text:literal, $call:literal) => {
        &[
            "python3",
            "-c",
            concat!(
                "import ctypes,os,select,signal,struct,threading,time\n",
                "call=ctypes.CDLL(None).syscall\n",
                "clock=ctypes.create_string_buffer(struct.pack('qq',0,200000000))\n",
                "threading.Thread(target=os.read,args=(0,9),daemon=True).start()\n",
                "print('",
                $text,
                "',end='',flush=True)\n",
                "def wait():\n  ",
                $call,
                "\nwhile True: wait()",
            ),
        ]
    };
}

/// The same program twice: it asks, and so it likely waits, or it does not ask, and only listens.
macro_rules! both {
    ($name:literal, $call:literal) => {
        [
            likely(concat!("a prompt beside ", $name), Line, reader_and!("Name: ", $call)).uncertain(),
            listens(concat!("no prompt beside ", $name), reader_and!("", $call)),
        ]
    };
}

fn beside_a_reader() -> Vec<Row> {
    [
        both!("Event.wait", "threading.Event().wait(.2)"),
        both!("a futex", "call(202,ctypes.byref(ctypes.c_int(0)),0,0,clock)"),
        both!("futex_waitv", "call(449,struct.pack('QQII',0,ctypes.addressof(clock),2,0),1,0,ctypes.create_string_buffer(struct.pack('qq',int(time.monotonic())+9,0)),1)"),
        both!("rt_sigtimedwait", "signal.sigtimedwait([signal.SIGUSR1],.2)"),
        both!("poll", "select.poll().poll(200)"),
        both!("ppoll", "call(271,None,0,ctypes.create_string_buffer(clock.raw),None,8)"),
        both!("select", "select.select([],[],[],.2)"),
        both!("epoll_wait", "select.epoll().poll(.2)"),
        both!("epoll_pwait2", "e=select.epoll(); call(441,e.fileno(),ctypes.create_string_buffer(12),1,clock,None,8)"),
        both!("nanosleep", "time.sleep(.2)"),
        both!("a timer in a set", "t=call(283,1,0); call(286,t,0,struct.pack('qqqq',0,200000000,0,200000000),None); p=select.poll(); p.register(t,1); p.poll(); os.close(t)"),
        both!("a wait of ten minutes", "threading.Event().wait(600)"),
    ]
    .into_iter()
    .flatten()
    // Numbers of system calls are those of one architecture.
    .filter(|row| cfg!(target_arch = "x86_64") || !row.argv[2].contains("  call("))
    .collect()
}

fn in_other_processes() -> Vec<Row> {
    vec![
        likely(
            "a prompt beside a timer in another process",
            Line,
            &["sh", "-c", "python3 -c 'import threading\nwhile True: threading.Event().wait(.2)' & printf 'Name: '; read x"],
        )
        .needs(&["python3"])
        .uncertain(),
        likely(
            "a prompt beside a timer in another session",
            Line,
            &["sh", "-c", "setsid sleep 60 & printf 'Name: '; read x"],
        )
        .uncertain(),
        likely("a POSIX timer beside a prompt", Line, &["timeout", "--foreground", "60", "sh", "-c", "printf 'Name: '; read x"])
            .uncertain(),
        likely(
            "a lock taken up again after a stop beside a prompt",
            Line,
            &[
                "python3",
                "-c",
                "import os,signal,threading,time\nparent=os.getpid()\nif os.fork()==0:\n  time.sleep(.4); os.kill(parent,signal.SIGSTOP); time.sleep(.2); os.kill(parent,signal.SIGCONT); os._exit(0)\nthreading.Thread(target=os.read,args=(0,9),daemon=True).start()\nprint('Name: ',end='',flush=True)\nthreading.Event().wait(600)",
            ],
        )
        .uncertain(),
    ]
}

/// A Java program that is compiled as it starts.
macro_rules! java {
    ($body:literal) => {
        &[
            "sh",
            "-c",
            concat!(
                "echo 'class A{public static void main(String[] a)throws Exception{",
                $body,
                "}}' > A.java; exec java A.java"
            ),
        ]
    };
}

/// A spinner in the manner of ora: it hides the cursor, takes keys so as to throw them away, and draws its row anew.
macro_rules! spinner {
    ($text:literal, $milliseconds:literal) => {
        &[
            "node",
            "-e",
            concat!(
                "process.stdin.setRawMode(true);process.stdin.on('data',()=>{});process.stdout.write('\\x1b[?25l');",
                "let n=0;const draw=()=>process.stdout.write('\\r\\x1b[K'+'-\\\\|/'[n++%4]+' ",
                $text,
                "');draw();setInterval(draw,",
                $milliseconds,
                ")"
            ),
        ]
    };
}

fn at_work() -> Vec<Row> {
    vec![
        listens(
            "java sleeps beside a reader",
            java!("System.out.println(\"up\");new Thread(()->new java.util.Scanner(System.in).nextLine()).start();while(true)Thread.sleep(200);"),
        )
        .needs(&["java"])
        .once("up"),
        listens("spinner, 130 ms", spinner!("Installing packages", 130)),
        listens("spinner, 400 ms", spinner!("Installing packages", 400)),
        busy("spinner beside a colon", spinner!("Uploading (1/3):", 400)),
        busy(
            "spinner beside a colon and a socket",
            &[
                "node",
                "-e",
                "process.stdin.setRawMode(true);process.stdin.on('data',()=>{});require('net').createServer().listen(0,'127.0.0.1');let n=0;const draw=()=>process.stdout.write('\\r\\x1b[K'+'-\\\\|/'[n++%4]+' Uploading (1/3):');draw();setInterval(draw,400)",
            ],
        )
        .once("Uploading"),
        listens(
            "progress beside a listener",
            &[
                "node",
                "-e",
                "process.stdin.on('data',()=>{});process.stdout.write('Downloading 0%');setInterval(()=>{},5000)",
            ],
        ),
        listens(
            "interpreter at work, pastes marked",
            &[
                "node",
                "-e",
                "process.stdin.setRawMode(true);process.stdin.on('data',()=>{});process.stdout.write('\\x1b[?2004h> sleep(60000)\\n');setTimeout(()=>{},60000)",
            ],
        ),
        listens(
            "hidden cursor at work",
            &[
                "node",
                "-e",
                "process.stdin.setRawMode(true);process.stdin.on('data',()=>{});process.stdout.write('\\x1b[?25l');console.log('compiling');setTimeout(()=>{},60000)",
            ],
        ),
    ]
}

fn asking() -> Vec<Row> {
    vec![
        likely(
            "java reads without a prompt",
            Line,
            java!("System.out.println(\"up\");new java.util.Scanner(System.in).nextLine();"),
        )
        .needs(&["java"])
        .once("up")
        .uncertain(),
        likely(
            "java asks beside a sleeping thread",
            Line,
            java!("System.out.print(\"Name: \");new Thread(()->new java.util.Scanner(System.in).nextLine()).start();while(true)Thread.sleep(200);"),
        )
        .needs(&["java"])
        .once("Name:")
        .uncertain(),
        likely(
            "a question after a spinner",
            Line,
            &[
                "node",
                "-e",
                "let n=0;const t=setInterval(()=>{process.stdout.write('\\r'+'-\\\\|/'[n++%4]+' working');if(n>5){clearInterval(t);setInterval(()=>{},300);require('readline').createInterface({input:process.stdin,output:process.stdout}).question('\\r\\x1b[KName? ',()=>{})}},100)",
            ],
        )
        .once("Name?"),
        likely(
            "a menu beside a clock",
            Menu,
            &[
                "node",
                "-e",
                "process.stdin.setRawMode(true);process.stdin.resume();setInterval(()=>{},200);process.stdout.write('\\x1b[?25lPick:\\n> a\\n  b\\n')",
            ],
        ),
    ]
}
