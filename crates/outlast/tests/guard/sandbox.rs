//! A job in a sandbox: what must fail fails, what must work works, and what can't be had is said.

use outlast_testkit::{Ran, Sandbox, TEST_TIMEOUT, eventually, has, left_out};

use crate::sandbox;

/// Whether this kernel can do it; where it can't, asking for it must be refused.
pub(crate) fn can(sandbox: &Sandbox) -> bool {
    let can = outlast_pty::confine::landlock_abi() >= outlast_pty::confine::OLDEST_LANDLOCK;
    if !can {
        eprintln!("this kernel has no Landlock that will do: only the refusal is tried");
        sandbox.run(["run", "--sandbox", "true"]).code(1).says("can't be had");
    }
    can
}

/// Whether bubblewrap works here.
pub(crate) fn has_bwrap(sandbox: &Sandbox) -> bool {
    if !has("bwrap") {
        return false;
    }
    let probe = sandbox.run(["run", "-q", "-n", "--sandbox=bwrap", "true"]);
    if probe.code != Some(0) {
        left_out(&format!("bubblewrap does not work: {}", probe.text().trim()), "allow user namespaces");
    }
    probe.code == Some(0)
}

/// Runs a line in the sandbox to its end.
pub(crate) fn confined(sandbox: &Sandbox, flags: &[&str], line: &str) -> Ran {
    let args = ["run", "-q", "-n", "--sandbox"].into_iter().chain(flags.iter().copied());
    sandbox.call(args).args(["bash", "-c", line]).run()
}

/// Insists that a line fails in the sandbox, and that it would work outside.
#[track_caller]
fn fails_only_inside(sandbox: &Sandbox, flags: &[&str], line: &str) {
    let ran = confined(sandbox, flags, line);
    assert_ne!(ran.code, Some(0), "{line}: {}", ran.text());
    sandbox.run(["run", "-q", "-n", "bash", "-c", line]).ok();
}

#[test]
fn it_writes_into_its_folder_and_its_own_temporary_one_and_nowhere_else() {
    let sandbox = sandbox();
    if !can(&sandbox) {
        return;
    }
    let ran = confined(
        &sandbox,
        &[],
        "echo in > inside && mkdir -p a/b && mv inside a/b/ && cat a/b/inside && rm -r a && \
        f=$(mktemp) && echo tmp > $f && cat $f && cat <<<here && echo ok > /dev/null && echo $TMPDIR",
    );
    let text = ran.ok().text();
    let temporary = text.lines().last().unwrap().to_owned();
    assert!(text.starts_with("in\r\ntmp\r\nhere\r\n") || text.starts_with("in\ntmp\nhere\n"), "{text:?}");
    eventually("its temporary folder goes with it", TEST_TIMEOUT, || {
        if std::path::Path::new(temporary.trim()).exists() { Err(temporary.clone()) } else { Ok(()) }
    });
    let outside = sandbox.root().join("outside");
    std::fs::write(&outside, "as it was").unwrap();
    let path = outside.display();
    for line in [
        format!("echo x > {path}"),
        format!("echo x >> {path}"),
        format!("truncate -s 0 {path}"),
        format!("touch {path}-new"),
        format!("mkdir {path}-folder"),
        format!("ln -s x {path}-link"),
        "touch ../beside".into(),
        "ln -sfn .. out && touch out/beside".into(),
    ] {
        fails_only_inside(&sandbox, &[], &line);
        std::fs::write(&outside, "as it was").unwrap();
        let _ = std::fs::remove_file(sandbox.root().join("beside"));
        let _ = std::fs::remove_file(sandbox.work().join("out"));
        for suffix in ["-new", "-link"] {
            let _ = std::fs::remove_file(sandbox.root().join(format!("outside{suffix}")));
        }
        let _ = std::fs::remove_dir(sandbox.root().join("outside-folder"));
    }
    let ran = confined(&sandbox, &[], &format!("mv {path} . || rm {path}"));
    assert_ne!(ran.code, Some(0));
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "as it was");
    let allowed = sandbox.root().join("allowed");
    std::fs::create_dir(&allowed).unwrap();
    let allowed = allowed.to_str().unwrap();
    confined(&sandbox, &["--writable", allowed], &format!("echo yes > {allowed}/file")).ok();
}

#[test]
fn it_reads_the_system_and_not_the_home() {
    let sandbox = sandbox();
    if !can(&sandbox) {
        return;
    }
    let user = sandbox.root().join("user");
    for folder in [".ssh", ".cargo/bin", ".aws", "notes"] {
        std::fs::create_dir_all(user.join(folder)).unwrap();
    }
    for file in [
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".netrc",
        "notes/diary",
        ".cargo/credentials.toml",
        ".bash_history",
    ] {
        std::fs::write(user.join(file), "private").unwrap();
        fails_only_inside(&sandbox, &[], &format!("cat {}", user.join(file).display()));
    }
    fails_only_inside(&sandbox, &[], &format!("ls {}", user.display()));
    let keeper = sandbox.start(["sleep", "1000"]);
    fails_only_inside(&sandbox, &[], &format!("cat {}", sandbox.job(keeper).join("info.json").display()));
    fails_only_inside(&sandbox, &[], &format!("ls {}", sandbox.home().display()));
    confined(
        &sandbox,
        &[],
        "cat /etc/hostname /proc/self/status /usr/bin/env > /dev/null && ls /usr/bin > /dev/null",
    )
    .ok();
    let notes = user.join("notes");
    let notes = notes.to_str().unwrap();
    confined(&sandbox, &["--readable", notes], &format!("cat {notes}/diary && ! touch {notes}/x")).ok();
}

#[test]
fn it_reaches_no_network_no_socket_and_no_other_process() {
    let sandbox = sandbox();
    if !can(&sandbox) || !has("/usr/bin/python3") {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = sandbox.start(["sleep", "1000"]);
    let (keeper, command) = (sandbox.pid(other, "keeper"), sandbox.pid(other, "process"));
    let socket = sandbox.job(other).join("keeper.sock");
    let socket = socket.display();
    let python = |code: &str| format!("/usr/bin/python3 -c '{code}'");
    fails_only_inside(&sandbox, &[], &format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    fails_only_inside(
        &sandbox,
        &[],
        &python("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    );
    fails_only_inside(
        &sandbox,
        &[],
        &python(&format!(
            "import socket; s=socket.socket(socket.AF_UNIX); s.connect(\"{socket}\"); assert s.recv(9)"
        )),
    );
    fails_only_inside(&sandbox, &[], &format!("{} screen {other}", sandbox.program().display()));
    fails_only_inside(&sandbox, &[], &format!("kill -0 {command}"));
    let ptrace = |pid: i32| {
        python(&format!(
            "import ctypes,os; l=ctypes.CDLL(None, use_errno=True); r=l.ptrace(0x4206, {pid}, 0, 0); e=ctypes.get_errno(); os._exit(0 if r==0 else e)"
        ))
    };
    // SEIZE of the keeper and of another job's command: EPERM.
    assert_eq!(confined(&sandbox, &[], &ptrace(keeper)).code, Some(1));
    assert_eq!(confined(&sandbox, &[], &ptrace(command)).code, Some(1));
    fails_only_inside(&sandbox, &[], &format!("cat /proc/{command}/environ > /dev/null"));
    assert_ne!(confined(&sandbox, &[], &format!("kill -9 {keeper}")).code, Some(0));
    assert_eq!(sandbox.pid(other, "keeper"), keeper, "it lives");
    let sti = python("import fcntl,termios; fcntl.ioctl(0, termios.TIOCSTI, b\"x\")");
    assert_ne!(confined(&sandbox, &[], &sti).code, Some(0));
    // And what programs need of sockets works.
    confined(
        &sandbox,
        &[],
        &python("import socket; a,b=socket.socketpair(); a.send(b\"x\"); assert b.recv(1)"),
    )
    .ok();
}

#[test]
fn keepers_refuse_a_confined_peer_even_with_sockets() {
    let sandbox = sandbox();
    if !can(&sandbox) || !has("/usr/bin/python3") {
        return;
    }
    let other = sandbox.start(["sleep", "1000"]);
    let socket = sandbox.job(other).join("keeper.sock");
    let talk = format!(
        "import socket\ns=socket.socket(socket.AF_UNIX)\ns.connect(\"{}\")\nf=s.makefile(\"r\")\nf.readline()\n\
         try:\n  s.sendall(b\"{{\\\"id\\\":7,\\\"verb\\\":\\\"status\\\"}}\\n\")\nexcept OSError:\n  pass\nprint(f.readline())",
        socket.display()
    );
    let line = format!("/usr/bin/python3 -c '{talk}'");
    let open = sandbox.run(["run", "-q", "-n", "bash", "-c", &line]).ok().text();
    assert!(open.contains("\"status\""), "{open}");
    let inside = confined(&sandbox, &["--unix-sockets"], &line).text();
    assert!(inside.contains("a process in a sandbox can't talk to keepers"), "{inside}");
    // Nor what it leaves behind, or puts between itself and us.
    let hidden =
        confined(&sandbox, &["--unix-sockets"], &format!("(setsid {line} &) ; setsid -w {line}")).text();
    assert!(!hidden.contains("\"status\"") && hidden.contains("can't talk to keepers"), "{hidden}");
}

#[test]
fn keepers_refuse_whoever_descends_from_a_sandboxed_job() {
    let sandbox = sandbox();
    if !has("/usr/bin/python3") {
        return;
    }
    let other = sandbox.start(["sleep", "1000"]);
    // Not confined at all, but below what calls itself the keeper of a job in a sandbox.
    let script = sandbox.work().join("keep");
    let ask = format!("{} screen {other}\necho ended $?", sandbox.program().display());
    std::fs::write(&script, ask).unwrap();
    let free = sandbox.shell("bash keep somewhere free").run();
    assert!(free.text().contains("ended 0"), "{}", free.text());
    let below = sandbox.shell("bash keep somewhere confined; true").run();
    assert!(
        below.text().contains("ended 5") && below.stderr.contains("can't talk to keepers"),
        "{}",
        below.stderr
    );
}

#[test]
fn a_loopback_of_its_own_reaches_itself_and_nobody_else() {
    let sandbox = sandbox();
    if !can(&sandbox) || !has("/usr/bin/python3") {
        return;
    }
    let flags = ["--network", "loopback"];
    if outlast_pty::confine::has_namespaces().is_err() {
        eprintln!("no network namespace can be had here: only the refusal is tried");
        let refused = confined(&sandbox, &flags, "true");
        assert_ne!(refused.code, Some(0));
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    fails_only_inside(&sandbox, &flags, &format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    let itself = "import socket,threading\ns=socket.create_server((\"127.0.0.1\", 0))\n\
        threading.Thread(target=lambda: s.accept()[0].send(b\"x\")).start()\n\
        assert socket.create_connection(s.getsockname()).recv(1) == b\"x\"";
    confined(&sandbox, &flags, &format!("/usr/bin/python3 -c '{itself}'")).ok();
    let on = confined(&sandbox, &["--network", "on"], &format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    on.ok();
}

#[test]
fn nothing_gets_out_by_a_new_namespace_or_an_old_kind_of_call() {
    let sandbox = sandbox();
    if !can(&sandbox) || !has("/usr/bin/python3") {
        return;
    }
    for line in ["unshare -Ur true", "unshare -n true", "mount -t tmpfs none .", "nsenter -t 1 -m true"] {
        assert_ne!(confined(&sandbox, &[], line).code, Some(0), "{line}");
    }
    let call = |number: i64| {
        format!(
            "/usr/bin/python3 -c 'import ctypes,os; l=ctypes.CDLL(None, use_errno=True); l.syscall(ctypes.c_long({number}),0,0,0,0); os._exit(ctypes.get_errno())'"
        )
    };
    // io_uring_setup and, by its second set of numbers, getpid: the kernel is said not to know them.
    let mut numbers = vec![425];
    if cfg!(target_arch = "x86_64") {
        numbers.push(0x4000_0000 + 39);
    }
    for number in numbers {
        assert_eq!(confined(&sandbox, &[], &call(number)).code, Some(38), "{number}");
    }
}

#[test]
fn what_can_not_be_had_or_is_too_wide_starts_nothing() {
    let sandbox = sandbox();
    if !can(&sandbox) {
        return;
    }
    let home = sandbox.home().display().to_string();
    std::fs::create_dir_all(sandbox.home()).unwrap();
    let root = sandbox.root().display().to_string();
    for (flags, says) in [
        (vec!["--writable", root.as_str()], "the jobs themselves"),
        (vec!["--readable", home.as_str()], "the jobs themselves"),
        (vec!["--writable", "/nowhere/at/all"], "/nowhere/at/all"),
        (vec!["--cwd", "/"], "the jobs themselves"),
    ] {
        let args = ["--json", "run", "-d", "--sandbox"].into_iter().chain(flags).chain(["touch", "ran"]);
        let refused = sandbox.run(args).code(1).json();
        assert!(refused["error"]["message"].as_str().unwrap().contains(says), "{refused}");
        assert_eq!(refused["error"]["kind"], "cannot_start", "{refused}");
    }
    assert!(!sandbox.work().join("ran").exists());
    sandbox.run(["run", "--writable", "/tmp", "true"]).code(2).says("--sandbox");
    let left: Vec<_> = std::fs::read_dir(sandbox.home().join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn its_record_says_what_it_is_in() {
    let sandbox = sandbox();
    if !can(&sandbox) {
        return;
    }
    let job = sandbox.start(["--sandbox", "--", "sleep", "1000"]);
    let info = sandbox.info(job);
    assert_eq!(info["sandbox"]["network"], "off", "{info}");
    assert!(info["sandbox_by"].as_str().unwrap().starts_with("landlock "), "{info}");
    let doctor = sandbox.json(["doctor"]);
    let said = doctor["checks"].as_array().unwrap().iter().find(|check| check["check"] == "sandbox").unwrap();
    assert!(said["detail"].as_str().unwrap().contains("seccomp"), "{said}");
    // A person can still type into it, look at it and end it.
    assert_eq!(sandbox.json(["kill", &job.to_string()])["status"], "killed");
    sandbox.nothing_runs();
    assert!(!sandbox.home().join("tmp").join(job.to_string()).exists());
}

#[test]
fn bubblewrap_builds_the_same_walls() {
    let sandbox = sandbox();
    if !has_bwrap(&sandbox) {
        return;
    }
    let bwrap = |line: &str| sandbox.run(["run", "-q", "-n", "--sandbox=bwrap", "--", "bash", "-c", line]);
    std::fs::create_dir_all(sandbox.work().join(".git/hooks")).unwrap();
    let user = sandbox.root().join("user/.ssh");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("id"), "private").unwrap();
    bwrap("echo in > inside && cat inside && f=$(mktemp) && echo x > $f && echo x > /tmp/y").ok();
    let root = sandbox.root().display();
    for line in [
        format!("cat {root}/user/.ssh/id"),
        format!("ls {root}/state/outlast/jobs"),
        "echo x > .git/hooks/pre-commit".into(),
        "exec 3<>/dev/tcp/127.0.0.1/22".into(),
        "unshare -Ur true".into(),
    ] {
        assert_ne!(bwrap(&line).code, Some(0), "{line}");
    }
    // There its /tmp is one of its own, so that this is written, and gone.
    let _ = bwrap(&format!("echo x > {root}/outside"));
    assert!(!sandbox.root().join("outside").exists());
}
