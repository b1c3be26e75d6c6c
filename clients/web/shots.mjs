// Pictures of the web view for the guide, from real jobs in a home of their own: `cargo xtask shots`.
import { mkdirSync } from 'node:fs';
import { address, browser, outlast, rowsOf, run, serve, start } from './browser.mjs';

const TO = process.env.SHOTS;

function jobs() {
  start('api', 'i=0; while :; do i=$((i+1)); printf "\\e[2m12:04:%02d\\e[0m \\e[36mGET\\e[0m /v1/orders/%s \\e[32m200\\e[0m %sms\\n" $((i%60)) $((i*37%900)) $((i*7%40)); sleep 0.3; done');
  start('deploy', 'printf "Terraform will perform the following actions:\\n\\n  \\e[32m+\\e[0m aws_sqs_queue.orders\\n  \\e[32m+\\e[0m aws_lambda_function.worker\\n  \\e[33m~\\e[0m aws_iam_role.worker\\n\\nPlan: 2 to add, 1 to change, 0 to destroy.\\n\\n"; read -p "Apply these changes to staging? [y/N] " a; sleep 600');
  start('login', 'echo "Connecting to db.staging ..."; read -s -p "Password for deploy@db.staging: " p; sleep 600');
  start('tests', 'echo "running 24 tests"; for i in $(seq 1 23); do printf "test orders::case_%02d ... \\e[32mok\\e[0m\\n" $i; sleep 0.02; done; printf "test orders::refund ... \\e[31mFAILED\\e[0m\\n\\nfailures:\\n    orders::refund: expected 200, got 504\\n"; exit 101');
  start('migrate', 'for i in $(seq 1 12); do echo "migrating batch $i of 12"; sleep 0.4; done; sleep 600');
  start('build', 'echo "   Compiling orders v2.3.0"; sleep 1; echo "    Finished release in 1.02s"');
  const repl = start('notebook', 'export PYTHON_COLORS=0; exec python3 -q');
  outlast('wait', String(repl), '--pattern', '>>>', '--deadline', '30s');
  outlast('send', String(repl), 'import statistics; data = [12, 15, 11, 19, 14]');
  outlast('send', String(repl), 'statistics.mean(data), statistics.stdev(data)');
  outlast('wait', 'migrate', '--pattern', 'batch 12', '--deadline', '60s');
  return { repl };
}

async function shots() {
  mkdirSync(TO, { recursive: true });
  const { repl } = jobs();
  const server = await serve();
  const { page } = await browser({ viewport: { width: 1240, height: 780 }, colorScheme: 'light' });
  const shot = (name) => page.screenshot({ path: `${TO}/web-${name}.png` });
  const settle = () => page.waitForTimeout(1500);
  await page.goto(server.url);
  await page.waitForSelector('#jobs .card');
  await settle();
  await shot('jobs');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot('jobs-dark');
  await page.goto(address(server, `/job/${repl}`));
  await page.waitForFunction(() => window.outlast);
  await page.click('#take');
  await page.waitForFunction(() => window.outlast.mine());
  await page.keyboard.type('sum(data)\n');
  await page.waitForFunction(() => window.outlast.rows().some((row) => row === '71'));
  await settle();
  await shot('terminal');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(address(server, '/job/5'));
  await page.waitForFunction(() => window.outlast);
  await page.click('#tab-timeline');
  await page.waitForFunction(() => document.querySelector('#timeline').dataset.shown);
  await page.getByLabel('Moment').fill('3000');
  await settle();
  await shot('timeline');
  await page.setViewportSize({ width: 360, height: 700 });
  await page.goto(address(server, '/'));
  await page.waitForSelector('#jobs .card');
  await settle();
  await shot('phone');
  await rowsOf(page).catch(() => {});
}

await run({ shots });
