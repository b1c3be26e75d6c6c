// The page, as a person uses it. Each scenario is a test of crates/outlast/tests/web/browser.rs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { AXE, address, browser, check, eventually, outlast, rowsOf, run, screen, serve, start, startIn, tried } from './browser.mjs';

const shows = (page, text) => eventually(`the terminal shows ${text}`, async () => { const rows = await rowsOf(page); return rows.some((row) => row.includes(text)) || rows; });
const same = (page, job) => eventually('the page and outlast screen show the same', async () => {
  const [here, there] = [await rowsOf(page), screen(job)];
  const trim = (rows) => rows.join('\n').trimEnd();
  return trim(here) === trim(there) || { here, there };
});

async function enter(page, server) {
  const ticket = server.url.split('#ticket=')[1];
  const told = [];
  page.on('request', (request) => told.push(request.url(), request.headers().referer ?? ''));
  await page.goto(server.url);
  await page.waitForSelector('#jobs .card');
  const key = await page.evaluate(() => sessionStorage.getItem('outlast-key'));
  check(!told.some((text) => text.split('#')[0].includes(ticket) || text.includes(key)), 'no address and no referrer has the token or the key');
  check(await page.evaluate((token) => ![location.href, document.referrer, JSON.stringify(history.state), document.documentElement.outerHTML].some((text) => text?.includes(token)), ticket), 'nor the page and its history');
  await page.goBack().catch(() => null);
  check(!page.url().includes(ticket), 'going back does not bring the token back');
  await page.goto(address(server, '/'));
  await page.waitForSelector('#jobs .card');
  check(!page.url().includes('ticket'), 'the token is gone from the address');
  check(!(await page.evaluate(() => performance.getEntriesByType('navigation')[0].name)).includes('outlast-key'), 'no key in the address');
}

const HOSTILE = '<img id=injected src=x onerror=alert(3)>"&amp;';

function jobs() {
  mkdirSync(HOSTILE, { recursive: true });
  return {
    hostile: startIn(HOSTILE, 'hostile', 'touch "<b id=injected>"; ls; sleep 600'),
    api: start('api', 'for i in $(seq 1 400); do printf "line %s \\e[32mok\\e[0m\\n" $i; done; echo tail of it; sleep 600'),
    deploy: start('deploy', 'read -p "Apply these changes? [y/N] " a; echo "you said <$a>"; sleep 600'),
    tests: start('tests', 'echo "1 test failed"; exit 3'),
    build: start('build', 'echo built'),
    markup: start('markup', 'printf "\\e]0;<img src=x onerror=alert(1)>\\a<script>alert(2)</script><b id=injected>bold</b>\\n"; sleep 600'),
  };
}

/// Every view, with whichever engine draws the terminal.
async function views(env, engine) {
  const job = jobs();
  const server = await serve([], env);
  check(server.terminal === engine, `the terminal is drawn by ${engine}`);
  const { page, complaints, context } = await browser();
  await enter(page, server);
  const ranks = () => page.$$eval('#jobs .group:not([hidden])', (groups) => groups.map((group) => group.dataset.rank));
  await eventually('jobs are sorted by who needs somebody', async () => { const now = await ranks(); return now.join() === 'asks,failed,running,done' || now; });
  await page.locator('#jobs .card', { hasText: 'for i in' }).scrollIntoViewIfNeeded();
  await page.waitForFunction(() => [...document.querySelectorAll('#jobs .tile .rows')].some((rows) => rows.textContent.includes('tail of it')));
  await page.click('#as-list');
  await page.fill('#filter', 'apply');
  await eventually('only what matches is shown', async () => (await page.$$eval('#jobs .card', (cards) => cards.filter((card) => card.offsetParent).length)) === 1);
  await page.press('#filter', 'Escape');
  await page.click('#as-grid');
  await page.getByRole('button', { name: 'Yes (y)' }).click();
  outlast('wait', String(job.deploy), '--pattern', 'you said <y>', '--deadline', '30s');
  await eventually('who was answered asks no more', async () => !(await ranks()).includes('asks'));
  start('late', 'sleep 600');
  await page.getByRole('link', { name: 'late', exact: true }).waitFor();
  await page.click('#tab-inbox');
  await page.waitForFunction(() => document.querySelector('#inbox').textContent.includes('exit code 3'));

  await page.goto(address(server, `/job/${job.api}`));
  await page.waitForFunction(() => window.outlast);
  check((await page.evaluate(() => document.documentElement.dataset.terminal)) === engine, `the terminal is drawn by ${engine}`);
  await shows(page, 'tail of it');
  await same(page, job.api);
  await page.click('#tab-transcript');
  await page.waitForFunction(() => document.querySelector('.text').textContent.includes('line 1 ok'));
  await page.fill('#transcript input', 'line 39\\d');
  await page.press('#transcript input', 'Enter');
  await page.waitForFunction(() => document.querySelectorAll('.found li').length === 10);
  await page.click('#tab-timeline');
  await page.waitForFunction(() => document.querySelector('#timeline').dataset.shown);
  const at = await page.evaluate(() => Number(document.querySelector('#timeline').dataset.shown));
  const then = JSON.parse(outlast('--json', 'replay', String(job.api), '--at', `${at}ms`)).rows.map((row) => row.trimEnd()).join('\n').trimEnd();
  const drawn = () => page.$$eval('.moment:last-child .rows > div', (rows) => rows.map((row) => row.textContent.trimEnd()).join('\n').trimEnd());
  await eventually('the timeline shows the screen of that moment', async () => { const now = await drawn(); return now === then || { now, then }; });
  await page.getByRole('button', { name: 'Compare from here' }).click();
  await page.getByLabel('Moment').fill('0');
  await page.waitForFunction(() => document.querySelector('#timeline').dataset.shown === '0' && document.querySelectorAll('.moment .differs').length > 4);
  for (const [label, needle] of [['Recording (.cast)', '"version":3'], ['Picture (.svg)', '<svg']]) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: label }).click()]);
    check(readFileSync(await download.path(), 'utf8').includes(needle), `${label} is what it says`);
  }

  await page.goto(address(server, `/job/${job.markup}`));
  await page.waitForFunction(() => window.outlast);
  await shows(page, '<script>alert(2)</script>');
  check(await page.evaluate(() => !document.querySelector('#injected, img[src="x"], script:not([src])')), 'output is never markup');
  await page.goto(address(server, `/job/${job.hostile}`));
  await page.waitForFunction(() => window.outlast);
  await shows(page, '<b id=injected>');
  await page.waitForFunction((name) => document.querySelector('#facts').textContent.includes(name), HOSTILE);
  check(await page.evaluate(() => !document.querySelector('#injected, img[src="x"]')), 'a name of a file is never markup');
  await page.goto(address(server, `/job/${job.tests}`));
  await page.waitForFunction(() => window.outlast);
  await shows(page, '1 test failed');
  await page.waitForFunction(() => document.querySelector('#state').textContent.includes('exit code 3'));
  check((await context.cookies()).every((cookie) => cookie.httpOnly && cookie.secure && cookie.sameSite === 'Strict'), 'the cookie is kept as it is sent');
  check(complaints.length === 0, `nothing is complained about: ${complaints.join('; ')}`);
}

/// A person types into a REPL while an agent wants to.
async function typing(env) {
  const job = start('repl', 'export LC_ALL=C.UTF-8; exec python3 -q');
  outlast('wait', String(job), '--pattern', '>>>', '--deadline', '30s');
  const server = await serve([], env);
  const { page, complaints } = await browser();
  await page.goto(server.url);
  await page.waitForSelector('#jobs .card');
  await page.goto(address(server, `/job/${job}`));
  await page.waitForFunction(() => window.outlast);
  await shows(page, '>>>');
  await page.click('#screen');
  await page.keyboard.type('x');
  check((await page.textContent('#held')).includes('Take over'), 'who has not taken over types nothing');
  await page.click('#take');
  await page.waitForFunction(() => window.outlast.mine());
  await page.click('#screen');
  await page.keyboard.type('6 * 7');
  await page.keyboard.press('Enter');
  await shows(page, '42');
  await page.keyboard.type('print("wide: \u6f22\u5b57 and e\u0301")');
  await page.keyboard.press('Enter');
  outlast('wait', String(job), '--pattern', 'wide: \u6f22\u5b57 and', '--deadline', '30s');
  await same(page, job);
  const refused = tried('send', String(job), 'print("agent")');
  check(refused.code === 5 && refused.said.includes('held by a person'), `an agent is told: ${refused.said}`);
  // A paste of several lines is shown first.
  const paste = (text) => page.evaluate((data) => {
    const carried = new DataTransfer();
    carried.setData('text', data);
    (document.querySelector('.xterm-helper-textarea') ?? document.querySelector('#screen')).dispatchEvent(new ClipboardEvent('paste', { clipboardData: carried, bubbles: true, cancelable: true }));
  }, text);
  await paste('a = 20\nprint(a + 3)\n');
  await page.waitForSelector('dialog[open]');
  check((await page.textContent('dialog pre')).includes('print(a + 3)'), 'what is pasted is shown');
  check(!screen(job).join('\n').includes('a = 20'), 'nothing was typed yet');
  await page.click('dialog [data-yes]');
  await shows(page, '23');
  await page.keyboard.press('Control+]');
  check(await page.evaluate(() => document.activeElement.id === 'take'), 'a key leads out of the terminal');
  await page.reload();
  await page.waitForFunction(() => window.outlast);
  await shows(page, '42');
  await page.click('#take');
  await page.waitForFunction(() => window.outlast.mine());
  await page.click('#take');
  await page.waitForFunction(() => !window.outlast.mine());
  check(tried('send', String(job), 'print("agent")', '--pattern', 'agent').code === 0, 'an agent types again');
  const words = readFileSync(`${process.env.OUTLAST_HOME}/jobs/${job}/events.jsonl`, 'utf8');
  check(words.includes('"taken"') && words.includes('"given_back"'), 'both are events');
  check(complaints.length === 0, `nothing is complained about: ${complaints.join('; ')}`);
}

/// Much output, wide characters, a full-screen editor, the steps of a shell, and two runs beside each other.
async function past(env) {
  const many = start('many', 'seq 1 100000; sleep 600');
  const wide = start('wide', 'printf "漢字 한글 wide\\n👍 thumbs\\n│ box ├─┤\\ncafe\\u0301 e\\n"; sleep 600');
  const [one, two] = ['one', 'two'].map((word) => start(`run-${word}`, `echo begins; echo ${word}; echo ends`));
  outlast('run', '--shell', 'dev', 'cd /tmp');
  tried('run', '--shell', 'dev', '(exit 3)');
  const vim = start('editor', 'exec vim -u NONE -n note.txt');
  outlast('wait', String(many), '--pattern', '^100000$', '--deadline', '60s');
  const server = await serve([], env);
  const { page, complaints } = await browser();
  await enter(page, server);
  const open = async (job) => {
    await page.goto(address(server, `/job/${job}`));
    await page.waitForFunction(() => window.outlast);
  };
  await open(many);
  await shows(page, '100000');
  await same(page, many);
  await page.click('#tab-transcript');
  await page.waitForFunction(() => document.querySelector('.text').textContent.includes('99999'));
  await page.fill('#transcript input', '^5000\\d$');
  await page.press('#transcript input', 'Enter');
  await page.waitForFunction(() => document.querySelectorAll('.found li').length === 10);
  await page.getByRole('button', { name: 'Beginning' }).click();
  await page.waitForFunction(() => document.querySelector('.text').textContent.startsWith('1\n2\n'));

  await open(wide);
  await shows(page, 'box');
  await same(page, wide);

  await open(vim);
  await shows(page, '~');
  await page.click('#take');
  await page.waitForFunction(() => window.outlast.mine());
  await page.click('#screen');
  await page.keyboard.type('itouch and go');
  await page.keyboard.press('Escape');
  await shows(page, 'touch and go');
  await page.keyboard.type(':wq');
  await page.keyboard.press('Enter');
  outlast('wait', String(vim), '--exit', '--deadline', '30s');
  check(readFileSync('note.txt', 'utf8') === 'touch and go\n', 'vim wrote what was typed');

  // The jobs beside the open one lead to each other.
  await page.locator('#rail a', { hasText: 'run-two' }).click();
  await page.waitForURL(`**/job/${two}`);
  await page.waitForFunction(() => window.outlast);
  await page.click('#tab-timeline');
  await page.waitForFunction(() => document.querySelector('#timeline').dataset.shown);
  await page.getByLabel('Compare with another run').selectOption(String(one));
  await page.waitForFunction(() => document.querySelector('.diff .second')?.textContent.includes('two') && document.querySelector('.diff .first').textContent.includes('one'));
  await eventually('both screens are shown', async () => (await page.$$eval('.moment:not([hidden]) .rows', (all) => all.map((rows) => /begins/.test(rows.textContent)))).join() === 'true,true');
  const shell = JSON.parse(outlast('--json', 'jobs', '--all')).jobs.find((job) => job.command === 'shell dev').handle;
  await open(shell);
  await page.click('#tab-timeline');
  await page.waitForFunction(() => [...document.querySelectorAll('.events button')].some((row) => row.textContent.includes('step 2: (exit 3) (exit code 3')));
  check(complaints.length === 0, `nothing is complained about: ${complaints.join('; ')}`);
}

/// An approval and a password, in the inbox, on a phone.
async function answers() {
  mkdirSync(`${process.env.XDG_CONFIG_HOME}/outlast`, { recursive: true });
  writeFileSync(`${process.env.XDG_CONFIG_HOME}/outlast/policy.toml`, '[[rule]]\ndecision = "ask"\nprefix = "touch"\nwhy = "files are precious"\n');
  writeFileSync('route.sh', '#!/bin/sh\ntouch canary && echo touched\nsleep 600\n', { mode: 0o755 });
  // A job that is started from inside a job is an agent's: what it executes is judged.
  writeFileSync('agent.sh', `#!/bin/sh\n${process.env.PROGRAM} run -d --name guarded ./route.sh\nsleep 600\n`, { mode: 0o755 });
  const password = start('login', 'read -s -p "Password: " p; echo; [ "$p" = open-sesame-42 ] && echo welcome; sleep 600');
  outlast('run', '-d', '--name', 'agent', './agent.sh');
  const server = await serve();
  const { page, complaints } = await browser({ viewport: { width: 360, height: 740 }, hasTouch: true });
  await enter(page, server);
  await page.click('#tab-inbox');
  const approval = page.locator('.item', { hasText: 'files are precious' });
  await approval.getByRole('button', { name: 'Allow once' }).waitFor();
  check((await approval.getByRole('button', { name: 'Allow once' }).boundingBox()).height >= 44, 'buttons are large enough for a thumb');
  await approval.getByRole('button', { name: 'Allow once' }).click();
  outlast('wait', 'guarded', '--pattern', 'touched', '--deadline', '30s');
  await page.fill('#inbox input[type=password]', 'open-sesame-42');
  await page.press('#inbox input[type=password]', 'Enter');
  outlast('wait', String(password), '--pattern', 'welcome', '--deadline', '30s');
  check(!readFileSync(`${process.env.OUTLAST_HOME}/jobs/${password}/output.log`, 'utf8').includes('open-sesame'), 'the password is in no log');
  await eventually('nobody needs somebody', async () => (await page.textContent('#inbox')).includes('Nobody needs you'));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check(wide <= 360, `nothing is wider than the phone: ${wide}`);
  const job = start('keys', 'read -p "Name? " n; echo "hello $n"; cat');
  outlast('wait', String(job), '--pattern', 'Name', '--deadline', '30s');
  await page.goto(address(server, `/job/${job}`));
  await page.waitForFunction(() => window.outlast);
  await page.fill('#line', 'phone');
  await page.press('#line', 'Enter');
  await shows(page, 'hello phone');
  await page.getByRole('button', { name: 'Ctrl-C' }).click();
  // A wait for the end has the job's own code: 128 and the signal of Ctrl-C.
  check(tried('wait', String(job), '--exit', '--deadline', '30s').code === 130, 'the key ends the job');
  check(complaints.length === 0, `nothing is complained about: ${complaints.join('; ')}`);
}

/// A server that is killed and started again; and a link for others.
async function restart() {
  const job = start('ticks', 'i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 0.3; done');
  const server = await serve();
  const { page, complaints } = await browser();
  await enter(page, server);
  await page.goto(address(server, `/job/${job}`));
  await page.waitForFunction(() => window.outlast);
  await shows(page, 'tick');
  const share = JSON.parse(outlast('--json', 'web', 'share', String(job), '--read-only', '--for', '1h'));
  await server.kill();
  await page.waitForFunction(() => !document.querySelector('#offline').hidden);
  const again = await serve();
  check(again.address === server.address, 'it comes back where it was');
  const before = Math.max(...(await rowsOf(page)).map((row) => Number(row.match(/tick (\d+)/)?.[1] ?? 0)));
  await page.waitForFunction(() => document.querySelector('#offline').hidden);
  await eventually('the page goes on by itself', async () => { const rows = await rowsOf(page); return rows.some((row) => Number(row.match(/tick (\d+)/)?.[1]) > before + 2) || rows; });

  const other = await browser();
  await other.page.goto(share.url);
  await other.page.waitForFunction(() => window.outlast);
  check((await other.page.evaluate(() => document.documentElement.dataset.terminal)) === 'rows', 'a guest sees rows');
  await shows(other.page, 'tick');
  check(!(await other.page.isVisible('#take')) && !(await other.page.isVisible('#sender')), 'a guest can do nothing');
  await other.page.goto(address(again, '/'));
  await other.page.waitForURL(`**/job/${job}`);
  outlast('web', 'revoke', String(share.share));
  await other.page.waitForFunction(() => document.body.textContent.includes('not signed in'));
  check(complaints.length === 0, `nothing is complained about: ${complaints.join('; ')}`);
}

/// The rules of axe, in every view, in both themes, large and small.
async function accessible() {
  const job = jobs();
  const server = await serve();
  const { page } = await browser({ bypassCSP: true });
  await enter(page, server);
  const bad = [];
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1280, 360]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      for (const [path, tab] of [['/', null], ['/inbox', null], [`/job/${job.deploy}`, null], [`/job/${job.api}`, 'transcript'], [`/job/${job.api}`, 'timeline'], [`/job/${job.tests}`, null]]) {
        await page.goto(address(server, path));
        if (path.startsWith('/job')) await page.waitForFunction(() => window.outlast);
        else await page.waitForSelector(path === '/' ? '#jobs .card' : '#inbox .item');
        if (tab) await page.click(`#tab-${tab}`);
        if (tab === 'timeline') await page.waitForFunction(() => document.querySelector('#timeline').dataset.shown);
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ['violations'] }));
        for (const violation of violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))) {
          bad.push(`${path} ${tab ?? ''} ${colorScheme} ${width}: ${violation.id}: ${violation.nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? ''}`).join(' | ')}`);
        }
      }
    }
  }
  check(bad.length === 0, `no serious violation:\n${bad.join('\n')}`);
}

await run({
  views: () => views({}, 'xterm.js'),
  'views-rows': () => views({ OUTLAST_WEB_XTERM: '0' }, 'rows'),
  typing: () => typing({}),
  'typing-rows': () => typing({ OUTLAST_WEB_XTERM: '0' }),
  past: () => past({}),
  'past-rows': () => past({ OUTLAST_WEB_XTERM: '0' }),
  answers,
  restart,
  accessible,
});
