//! Libraries that ask, and libraries that show progress, from npm and PyPI: `clients/asking` names them.

use outlast_pty::evidence::InputKind::{Key, Line, Menu, Password, Repl};

use super::row::{Row, busy, likely, listens};

pub(crate) fn rows() -> Vec<Row> {
    let node = [inquirer(), prompts(), other_npm(), npm_at_work()].concat();
    let node = node.into_iter().map(|row| row.needs(&["tools/asking/node_modules/inquirer/package.json"]));
    let rows = [questionary(), inquirer_py(), click_and_rich(), other_pypi(), pypi_at_work()].concat();
    node.chain(rows).map(Row::at_full_size).collect()
}

macro_rules! py {
    ($body:literal) => {
        &["tools/asking/py/bin/python3", "-c", $body]
    };
}

macro_rules! js {
    ($body:literal) => {
        &["node", "-e", $body]
    };
}

/// A question of inquirer 8, which most generators still use.
macro_rules! inquirer {
    ($question:literal) => {
        &["node", "-e", concat!("require('inquirer').prompt([{name:'x',", $question, "}])")]
    };
}

/// A question of its successor.
macro_rules! modern {
    ($question:literal) => {
        &["node", "--input-type=module", "-e", concat!(
            "import m from 'node:module';const p=m.createRequire(process.cwd()+'/x.js')(process.env.NODE_PATH+'/@inquirer/prompts');p.",
            $question
        )]
    };
}

fn inquirer() -> Vec<Row> {
    vec![
        likely("inquirer input", Line, inquirer!("message:'Project name'")).once("Project"),
        likely("inquirer password", Password, inquirer!("type:'password',message:'Your password',mask:'*'"))
            .once("password"),
        likely(
            "inquirer password, hidden",
            Password,
            inquirer!("type:'password',message:'Database password'"),
        )
        .once("password"),
        likely("inquirer confirm", Line, inquirer!("type:'confirm',message:'Go on?'")).once("Go on?"),
        likely("inquirer list", Menu, inquirer!("type:'list',message:'Pick',choices:['a','b']")).once("b"),
        likely("inquirer checkbox", Menu, inquirer!("type:'checkbox',message:'Pick',choices:['a','b']"))
            .once("b"),
        likely("inquirer rawlist", Line, inquirer!("type:'rawlist',message:'Pick',choices:['a','b']"))
            .once("Answer:"),
        likely("inquirer number", Line, inquirer!("type:'number',message:'How many?'")).once("many"),
        likely("@inquirer input", Line, modern!("input({message:'Project name'})")).once("Project"),
        likely("@inquirer password", Password, modern!("password({message:'Your password',mask:true})"))
            .once("password"),
        likely("@inquirer password, hidden", Password, modern!("password({message:'Enter your API token'})"))
            .once("token"),
        likely("@inquirer confirm", Line, modern!("confirm({message:'Go on?'})")).once("Go on?"),
        likely("@inquirer select", Menu, modern!("select({message:'Pick',choices:['a','b']})")).once("b"),
        likely(
            "@inquirer checkbox",
            Menu,
            modern!("checkbox({message:'Pick',choices:[{value:'a'},{value:'b'}]})"),
        )
        .once("b"),
        likely("@inquirer search", Menu, modern!("search({message:'Find',source:async()=>['aa','bb']})"))
            .once("bb"),
    ]
}

fn prompts() -> Vec<Row> {
    vec![
        likely("prompts text", Line, js!("require('prompts')({type:'text',name:'x',message:'Name?'})")).once("Name?"),
        likely("prompts password", Password, js!("require('prompts')({type:'password',name:'x',message:'Password?'})")).once("Password?"),
        likely("prompts invisible", Password, js!("require('prompts')({type:'invisible',name:'x',message:'Secret?'})")).once("Secret?"),
        likely("prompts number", Line, js!("require('prompts')({type:'number',name:'x',message:'Age?'})")).once("Age?"),
        likely("prompts confirm", Key, js!("require('prompts')({type:'confirm',name:'x',message:'Go on?'})")).once("Go on?"),
        likely("prompts select", Menu, js!("require('prompts')({type:'select',name:'x',message:'Pick',choices:[{title:'a'},{title:'b'}]})")).once("b"),
        likely("prompts multiselect", Menu, js!("require('prompts')({type:'multiselect',name:'x',message:'Pick',choices:[{title:'a'},{title:'b'}]})")).once("b"),
        likely("prompts toggle", Menu, js!("require('prompts')({type:'toggle',name:'x',message:'Sure?',active:'yes',inactive:'no'})")).once("Sure?"),
        likely("enquirer input", Line, js!("require('enquirer').prompt({type:'input',name:'x',message:'Name?'})")).once("Name?"),
        likely("enquirer password", Password, js!("require('enquirer').prompt({type:'password',name:'x',message:'Password?'})")).once("Password?"),
        likely("enquirer confirm", Key, js!("require('enquirer').prompt({type:'confirm',name:'x',message:'Go on?'})")).once("Go on?"),
        likely("enquirer select", Menu, js!("require('enquirer').prompt({type:'select',name:'x',message:'Pick',choices:['a','b']})")).once("b"),
        likely("enquirer multiselect", Menu, js!("require('enquirer').prompt({type:'multiselect',name:'x',message:'Pick',choices:['a','b']})")).once("b"),
        likely("enquirer autocomplete", Menu, js!("require('enquirer').prompt({type:'autocomplete',name:'x',message:'Pick',choices:['aa','bb']})")).once("bb"),
    ]
}

/// @clack/prompts, which new generators use.
macro_rules! clack {
    ($question:literal) => {
        &[
            "node",
            "-e",
            concat!(
                "import(process.env.NODE_PATH+'/@clack/prompts/dist/index.mjs').then(p=>p.",
                $question,
                ")"
            ),
        ]
    };
}

fn other_npm() -> Vec<Row> {
    vec![
        likely("clack text", Line, clack!("text({message:'Where?',placeholder:'./here'})")).once("Where?"),
        likely("clack password", Password, clack!("password({message:'Your password'})")).once("password"),
        likely("clack confirm", Menu, clack!("confirm({message:'Sure?'})")).once("Sure?"),
        likely("clack select", Menu, clack!("select({message:'Pick',options:[{value:'a'},{value:'b'}]})")).once("b"),
        likely("clack multiselect", Menu, clack!("multiselect({message:'Pick',options:[{value:'a'},{value:'b'}]})")).once("b"),
        busy("clack spinner", clack!("spinner().start('Installing')")).once("Installing"),
        likely("readline-sync question", Line, js!("require('readline-sync').question('Name? ')")).once("Name?"),
        likely("readline-sync password", Password, js!("require('readline-sync').question('Password? ',{hideEchoBack:true})")).once("Password?"),
        likely("readline-sync key", Key, js!("require('readline-sync').keyIn('Press a key ')")).once("key"),
        likely("read, silent", Password, js!("require('read').read({prompt:'Passphrase: ',silent:true})")).once("Passphrase"),
        likely("terminal-kit input", Line, js!("const t=require('terminal-kit').terminal;t('Name: ');t.inputField()")).once("Name:"),
        likely("terminal-kit yes or no", Key, js!("const t=require('terminal-kit').terminal;t('Go on? [Y|n] ');t.yesOrNo({yes:['y'],no:['n']},()=>{})")).once("Go on?"),
        likely("blessed list", Menu, js!("const b=require('blessed'),s=b.screen();s.append(b.list({items:['one','two'],keys:true,border:'line'}));s.render()")).once("two"),
        likely("node inspect", Repl, &["sh", "-c", "echo 'let a=1;a++' > a.js; exec node inspect a.js"]).once("debug>").needs(&["node"]),
        likely("npm init asks", Line, &["npm", "init"]).once("package name:"),
        likely("node readline prompt", Repl, js!("const r=require('readline').createInterface({input:process.stdin,output:process.stdout,prompt:'app> '});r.prompt()")).once("app>"),
        likely("node readline/promises", Line, js!("require('readline/promises').createInterface({input:process.stdin,output:process.stdout}).question('Token name: ')")).once("Token"),
    ]
}

fn npm_at_work() -> Vec<Row> {
    vec![
        busy("ora", js!("require('ora')('Installing').start()")).once("Installing"),
        busy("ora, a slow spinner and a colon", js!("require('ora')({text:'Uploading (1/3):',spinner:'line'}).start()")).once("Uploading"),
        busy("ora, points", js!("require('ora')({text:'Fetch metadata',spinner:'point'}).start()")).once("Fetch"),
        busy("listr2", js!("const {Listr}=require('listr2');new Listr([{title:'Build',task:()=>new Promise(()=>setInterval(()=>{},1e6))}]).run()")).once("Build"),
        busy("cli-progress", js!("const p=require('cli-progress'),b=new p.SingleBar({},p.Presets.shades_classic);b.start(100,0);let n=0;setInterval(()=>b.update(n++),400)")).once("0/100"),
        busy("nodemon watches", &["sh", "-c", "echo 'console.log(\"ran\")' > a.js; exec node $NODE_PATH/nodemon/bin/nodemon.js a.js"]).once("clean exit").needs(&["node"]),
        busy("tsc --watch", &["sh", "-c", "echo 'let a=1' > a.ts; exec node $NODE_PATH/typescript/bin/tsc --watch --noEmit a.ts"]).once("Found 0").needs(&["node"]),
        listens("vite", &["sh", "-c", "echo hi > index.html; exec node $NODE_PATH/vite/bin/vite.js"]).once("Local:").needs(&["node"]),
        busy("concurrently", &["sh", "-c", "exec node $NODE_PATH/concurrently/dist/bin/concurrently.js 'sleep 60' 'echo up; sleep 50'"]).once("up").needs(&["node"]),
    ]
}

fn questionary() -> Vec<Row> {
    vec![
        likely("questionary text", Line, py!("import questionary as q; q.text('Name?').ask()")).once("Name?"),
        likely(
            "questionary password",
            Password,
            py!("import questionary as q; q.password('Password?').ask()"),
        )
        .once("Password?"),
        likely("questionary confirm", Line, py!("import questionary as q; q.confirm('Go on?').ask()"))
            .once("Go on?"),
        likely(
            "questionary select",
            Menu,
            py!("import questionary as q; q.select('Pick',choices=['a','b']).ask()"),
        )
        .once("b"),
        likely(
            "questionary rawselect",
            Menu,
            py!("import questionary as q; q.rawselect('Pick',choices=['a','b']).ask()"),
        )
        .once("b"),
        likely(
            "questionary checkbox",
            Menu,
            py!("import questionary as q; q.checkbox('Pick',choices=['a','b']).ask()"),
        )
        .once("b"),
        likely(
            "questionary autocomplete",
            Line,
            py!("import questionary as q; q.autocomplete('Which animal?',choices=['ant','bee']).ask()"),
        )
        .once("animal"),
        likely("questionary path", Line, py!("import questionary as q; q.path('Where?').ask()"))
            .once("Where?"),
        likely(
            "questionary press any key",
            Key,
            py!("import questionary as q; q.press_any_key_to_continue().ask()"),
        )
        .once("key"),
    ]
}

fn inquirer_py() -> Vec<Row> {
    vec![
        likely(
            "InquirerPy text",
            Line,
            py!("from InquirerPy import inquirer as i; i.text(message='Name?').execute()"),
        )
        .once("Name?"),
        likely(
            "InquirerPy secret",
            Password,
            py!("from InquirerPy import inquirer as i; i.secret(message='New password:').execute()"),
        )
        .once("password"),
        likely(
            "InquirerPy confirm",
            Line,
            py!("from InquirerPy import inquirer as i; i.confirm(message='Go on?').execute()"),
        )
        .once("Go on?"),
        likely(
            "InquirerPy select",
            Menu,
            py!("from InquirerPy import inquirer as i; i.select(message='Pick',choices=['a','b']).execute()"),
        )
        .once("b"),
        likely(
            "InquirerPy fuzzy",
            Menu,
            py!(
                "from InquirerPy import inquirer as i; i.fuzzy(message='Pick',choices=['aa','bb']).execute()"
            ),
        )
        .once("bb"),
        likely(
            "InquirerPy number",
            Line,
            py!("from InquirerPy import inquirer as i; i.number(message='Age:').execute()"),
        )
        .once("Age"),
        likely("python-inquirer text", Line, py!("import inquirer as i; i.text(message='Name')"))
            .once("Name"),
        likely(
            "python-inquirer password",
            Password,
            py!("import inquirer as i; i.password(message='Password')"),
        )
        .once("Password"),
        likely("python-inquirer confirm", Key, py!("import inquirer as i; i.confirm('Go on?')"))
            .once("Go on?"),
        likely(
            "python-inquirer list",
            Menu,
            py!("import inquirer as i; i.list_input('Pick',choices=['a','b'])"),
        )
        .once("b"),
        likely(
            "python-inquirer checkbox",
            Menu,
            py!("import inquirer as i; i.checkbox('Pick',choices=['a','b'])"),
        )
        .once("b"),
    ]
}

fn click_and_rich() -> Vec<Row> {
    vec![
        likely("click.prompt", Line, py!("import click; click.prompt('Name')")).once("Name"),
        likely("click.prompt, a choice", Line, py!("import click; click.prompt('Size',type=click.Choice(['s','m']))")).once("Size"),
        likely("click.prompt, hidden", Password, py!("import click; click.prompt('Password',hide_input=True)")).once("Password"),
        likely("click.confirm", Line, py!("import click; click.confirm('Go on?')")).once("Go on?"),
        likely("click.pause", Key, py!("import click; click.pause()")).once("key"),
        likely("click.getchar", Key, py!("import click; click.echo('Which? ',nl=False); click.getchar()")).once("Which?"),
        likely("typer.prompt", Line, py!("import typer; typer.prompt('Your name')")).once("name"),
        likely("rich Prompt", Line, py!("from rich.prompt import Prompt; Prompt.ask('Name',choices=['a','b'])")).once("Name"),
        likely("rich Prompt, hidden", Password, py!("from rich.prompt import Prompt; Prompt.ask('Password',password=True)")).once("Password"),
        likely("rich Confirm", Line, py!("from rich.prompt import Confirm; Confirm.ask('Go on?')")).once("Go on?"),
        likely("cookiecutter's words", Line, py!("from rich.prompt import Prompt; Prompt.ask('  [1/3] project_name (My Project)')")).once("project"),
        busy("rich progress", py!("import time\nfrom rich.progress import track\nfor i in track(range(100),description='Processing'): time.sleep(.4)")).once("Processing"),
        busy("rich status", py!("import time\nfrom rich.console import Console\nwith Console().status('Working on it: '): time.sleep(60)")).once("Working"),
        busy("rich live", py!("import time\nfrom rich.live import Live\nwith Live('Choose?') as l:\n  for i in range(99): time.sleep(.7); l.update(f'Choose? {i}')")).once("Choose"),
    ]
}

fn other_pypi() -> Vec<Row> {
    vec![
        likely("prompt_toolkit prompt", Line, py!("from prompt_toolkit import prompt; prompt('Give a name: ')")).once("name"),
        likely("prompt_toolkit password", Password, py!("from prompt_toolkit import prompt; prompt('Password: ',is_password=True)")).once("Password"),
        likely("prompt_toolkit session", Repl, py!("from prompt_toolkit import PromptSession; PromptSession().prompt('db> ')")).once("db>"),
        likely("prompt_toolkit, a mark and no sign", Line, py!("import threading,time; from prompt_toolkit import prompt\nthreading.Thread(target=lambda:[time.sleep(0.4) for _ in range(999)],daemon=True).start(); prompt('🎤 Project name ')")).once("Project"),
        likely("prompt_toolkit dialog", Menu, py!("from prompt_toolkit.shortcuts import yes_no_dialog; yes_no_dialog(title='Sure',text='Go on?').run()")).once("Go on?"),
        likely("prompt_toolkit radiolist", Menu, py!("from prompt_toolkit.shortcuts import radiolist_dialog; radiolist_dialog(title='Pick',text='One',values=[('a','a'),('b','bb')]).run()")).once("bb"),
        likely("pick", Menu, py!("import pick; pick.pick(['one','two'],'Pick:')")).once("two"),
        likely("simple-term-menu", Menu, py!("from simple_term_menu import TerminalMenu; TerminalMenu(['one','two']).show()")).once("two"),
        likely("pwinput", Password, py!("import pwinput; pwinput.pwinput()")).once("Password"),
        likely("beaupy select", Menu, py!("import beaupy; beaupy.select(['one','two'])")).once("two"),
        likely("beaupy confirm", Menu, py!("import beaupy; beaupy.confirm('Go on?')")).once("Go on?"),
        likely("beaupy prompt", Line, py!("import beaupy; beaupy.prompt('Name?')")).once("Name?"),
        likely("cmd", Repl, py!("import cmd; cmd.Cmd().cmdloop()")).once("(Cmd)"),
        likely("cmd2", Repl, py!("import cmd2; cmd2.Cmd().cmdloop()")).once("(Cmd)"),
        likely("code.interact", Repl, py!("import code; code.interact(banner='')")).once(">>>"),
        likely("ipdb", Repl, py!("import ipdb; ipdb.set_trace(); x=1")).once("ipdb>"),
        likely("pudb", Menu, &["sh", "-c", "echo 'x=1' > a.py; printf '[pudb]\nseen_welcome = e999\n' > p; exec $TOOLS/asking/py/bin/python3 -m pudb a.py"]).once("Variables").needs(&["tools/asking/py/bin/python3"]),
        likely("getpass", Password, py!("import getpass; getpass.getpass('Vault code: ')")).once("Vault"),
        likely("textual input", Menu, py!("from textual.app import App\nfrom textual.widgets import Input\nclass A(App):\n  def compose(self): yield Input(placeholder='Name here')\nA().run()")).once("Name here"),
        listens("textual, a worker", py!("import time\nfrom textual.app import App\nfrom textual.widgets import Label\nclass A(App):\n  def compose(self): yield Label('Downloading it')\n  def on_mount(self): self.run_worker(lambda: time.sleep(60),thread=True)\nA().run()")).once("Downloading"),
        likely("urwid", Menu, py!("import urwid; urwid.MainLoop(urwid.Filler(urwid.Edit('Name? '))).run()")).once("Name?"),
        likely("npyscreen", Menu, py!("import npyscreen\ndef m(*a):\n  f=npyscreen.Form(name='Form'); f.add(npyscreen.TitleText,name='Name here'); f.edit()\nnpyscreen.wrapper_basic(m)")).once("Name here"),
    ]
}

fn pypi_at_work() -> Vec<Row> {
    vec![
        busy("tqdm", py!("import time,tqdm\nfor i in tqdm.tqdm(range(100)): time.sleep(.5)")).once("0/100"),
        busy("alive-progress", py!("import time\nfrom alive_progress import alive_bar\nwith alive_bar(100) as b:\n  for i in range(100): time.sleep(.5); b()")).once("1/100"),
        busy("halo", py!("import time,halo\nwith halo.Halo(text='Loading: '): time.sleep(60)")).once("Loading"),
        busy("yaspin", py!("import time,yaspin\nwith yaspin.yaspin(text='Loading?'): time.sleep(60)")).once("Loading"),
        busy("enlighten", py!("import time,enlighten\nm=enlighten.get_manager(); b=m.counter(total=100,desc='Ticks')\nfor i in range(100): time.sleep(.4); b.update()")).once("Ticks"),
        busy("watchdog", py!("import time\nfrom watchdog.observers import Observer\nfrom watchdog.events import FileSystemEventHandler\no=Observer(); o.schedule(FileSystemEventHandler(),'.'); o.start(); print('watching:',end=' ',flush=True); o.join()")).once("watching"),
        busy("pip downloads from a silent server", &["sh", "-c", "$TOOLS/asking/py/bin/python3 -c 'import socket,time\ns=socket.create_server((\"127.0.0.1\",0)); open(\"port\",\"w\").write(str(s.getsockname()[1])); time.sleep(60)' & while ! test -s port; do :; done; echo go; exec $TOOLS/asking/py/bin/pip --retries 0 download --no-cache-dir -i http://127.0.0.1:$(cat port)/ nothing"]).once("Looking in").needs(&["tools/asking/py/bin/python3"]),
    ]
}
