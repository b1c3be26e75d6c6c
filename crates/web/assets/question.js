// What a job asks, with the ways to answer it.
import { call, tryCall } from './api.js';
import { el, say, toast } from './ui.js';

// The buttons that a prompt suggests: y and n where it says so, otherwise a line to type.
function suggested(prompt) {
  const choice = prompt.match(/[[(]\s*(y(?:es)?)\s*[/|]\s*(n(?:o)?)\s*(?:[/|][^\])]*)?[\])]/i);
  return choice ? [choice[1].toLowerCase(), choice[2].toLowerCase()] : null;
}

async function send(job, params, node) {
  node.querySelectorAll('button, input').forEach((one) => { one.disabled = true; });
  const done = await tryCall('send', { job: job.job, ...params });
  node.querySelectorAll('button, input').forEach((one) => { one.disabled = false; });
  if (done) say('Sent');
}

export function answers(job, me) {
  const { awaiting } = job;
  if (!awaiting) return [];
  const prompt = el('span', { class: 'prompt' }, awaiting.prompt.trim() || 'It waits for input.');
  const box = el('div', { class: 'answers' });
  if (me?.read_only) return [prompt];
  if (awaiting.kind === 'approval') { fillApproval(job, box); return [prompt, box]; }
  if (awaiting.kind === 'password') { box.append(passwordForm(job)); return [prompt, box]; }
  if (awaiting.kind === 'key') {
    for (const [label, key] of [['y', 'y'], ['n', 'n'], ['Space', 'Space'], ['Enter', 'Enter'], ['Esc', 'Escape']]) {
      box.append(el('button', { type: 'button', onclick: () => send(job, { keys: [key] }, box) }, label));
    }
    return [prompt, box];
  }
  const choice = suggested(awaiting.prompt);
  if (choice) {
    box.append(el('button', { type: 'button', class: 'yes', onclick: () => send(job, { text: choice[0], enter: true }, box) }, choice[0] === 'yes' ? 'Yes' : 'Yes (y)'),
      el('button', { type: 'button', onclick: () => send(job, { text: choice[1], enter: true }, box) }, choice[1] === 'no' ? 'No' : 'No (n)'));
  }
  const input = el('input', { 'aria-label': `Answer job ${job.job}`, placeholder: 'Answer', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', enterkeyhint: 'send' });
  box.append(el('form', { onsubmit: async (event) => { event.preventDefault(); const text = input.value; input.value = ''; await send(job, { text, enter: true }, box); } }, input, el('button', { type: 'submit' }, 'Send')));
  return [prompt, box];
}

// A program that stands still: its questions come with the job, or are fetched.
async function fillApproval(job, box) {
  let { questions } = job;
  if (!questions) questions = (await tryCall('job', { job: job.job }))?.questions ?? [];
  box.replaceChildren(...questions.slice(0, 1).flatMap((asked) => approvalButtons(job.job, asked)));
}

export function approvalButtons(job, asked, done = () => {}) {
  const answer = async (allow, event) => {
    const all = [...event.currentTarget.parentElement.querySelectorAll('button')];
    all.forEach((one) => { one.disabled = true; });
    try {
      await call('answer', { job, question: asked.question, allow });
      say(allow ? 'It is executed' : 'It is not executed');
      done();
    } catch (error) {
      toast(error.message, error.hint);
      all.forEach((one) => { one.disabled = false; });
    }
  };
  return [el('button', { type: 'button', class: 'yes', onclick: (event) => answer(true, event) }, 'Allow once'), el('button', { type: 'button', onclick: (event) => answer(false, event) }, 'Deny')];
}

export function passwordForm(job) {
  const input = el('input', { type: 'password', 'aria-label': `Password for job ${job.job}`, placeholder: 'Password; no agent sees it', autocomplete: 'off' });
  return el('form', { onsubmit: async (event) => {
    event.preventDefault();
    const value = input.value;
    input.value = '';
    if (await tryCall('secret', { job: job.job, value })) say('The password was typed');
  } }, input, el('button', { type: 'submit' }, 'Send'));
}
