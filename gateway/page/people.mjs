// What a Job asks of people: questions, and decisions on held calls.

import { post } from './api.mjs';
import { announce, button, el, failure, field, longText, newId, refill } from './dom.mjs';
import { visible, words } from './format.mjs';
import { argumentText } from './timeline.mjs';

/** Returns the open requests of a Job. `update` keeps the forms of requests that are still open, with what a person has written. */
export function openRequests(job, changed) {
  const list = el('div', {});
  const element = el('section', { class: 'requests', 'aria-labelledby': 'requests', hidden: true }, el('h2', { id: 'requests' }, 'This Job waits for people'), list);
  let cards = new Map();

  const update = ({ approvals = [], questions = [], missing = {} }) => {
    const before = cards;
    cards = new Map();
    const keep = (key, make) => cards.set(key, before.get(key) ?? make());
    for (const asked of questions) keep(JSON.stringify(['question', asked, missing.reply]), () => questionCard(job, asked, missing.reply, changed));
    for (const held of approvals) keep(JSON.stringify(['call', held, missing.decide]), () => callCard(job, held, missing.decide ?? {}, changed));
    const added = [...cards.keys()].filter((key) => !before.has(key));
    if (added.length === 0 && cards.size === before.size) return;
    for (const [key, card] of before) if (!cards.has(key)) card.remove();
    for (const key of added) list.append(cards.get(key));
    element.hidden = cards.size === 0;
    if (added.length > 0) announce(approvals.length > 0 ? 'The Job waits for a decision.' : 'The Job waits for an answer.');
  };
  return { element, update };
}

/** Sends a form. Its controls are disabled until the server has responded, and stay so after a success. */
async function send(card, path, body, done, changed) {
  const controls = Array.from(card.querySelectorAll('button, input, textarea')).filter((control) => !control.disabled);
  const result = card.querySelector('.outcome');
  for (const control of controls) control.disabled = true;
  try {
    await post(path, body);
    refill(result, el('p', { class: 'hint' }, done));
    announce(done);
  } catch (error) {
    refill(result, failure(error));
    for (const control of controls) control.disabled = false;
  }
  changed();
}

function questionCard(job, { id, text, choices = [], refused }, missing, changed) {
  const heading = newId('question');
  const answer = (value) => send(card, ['jobs', job, 'replies'], { question: id, text: value }, 'The answer is sent.', changed);
  const input = el('textarea', { rows: 3, required: true, disabled: Boolean(missing) });
  const submit = (event) => {
    event.preventDefault();
    if (input.value.trim()) answer(input.value);
  };
  const card = el(
    'article',
    { class: 'panel wait', 'aria-labelledby': heading },
    el('h3', { id: heading }, 'Question'),
    longText(text),
    refused && el('p', { class: 'notice bad' }, `The last answer was not accepted: ${refused}`),
    choices.length > 0
      ? el('div', { class: 'actions', role: 'group', 'aria-labelledby': heading }, choices.map((choice) => button(choice, () => answer(choice), { disabled: Boolean(missing) })))
      : el('form', { on: { submit } }, field('Answer', input), el('button', { class: 'primary', disabled: Boolean(missing) }, 'Send the answer')),
    missing && missingRight(missing),
    el('div', { class: 'outcome' }),
  );
  return card;
}

function callCard(job, held, missing, changed) {
  const heading = newId('call');
  return el(
    'article',
    { class: 'panel wait', 'aria-labelledby': heading },
    el('h3', { id: heading }, 'Decide on ', el('code', {}, visible(held.tool))),
    el('ul', { class: 'notes' }, held.reasons.map(({ layer, detail }) => el('li', {}, `${words(layer)}: ${detail}`))),
    el('h4', {}, 'Arguments, as they will be sent'),
    argumentText(held.arguments),
    held.approvers.map((approver) => decision(job, held, approver, missing[approver], changed)),
  );
}

/** Returns the form of one approver. The decision names the arguments that are shown. */
function decision(job, held, approver, missing, changed) {
  const reason = el('input', { autocomplete: 'off', maxlength: 512, disabled: Boolean(missing) });
  const note = newId('missing');
  const decide = (ruling, done) => {
    const body = { decision: ruling, digest: held.digest, approver, ...(reason.value.trim() && { reason: reason.value.trim() }) };
    send(form, ['jobs', job, 'approvals', held.call], body, done, changed);
  };
  const attributes = (tone) => ({ class: tone, disabled: Boolean(missing), ...(missing && { 'aria-describedby': note }) });
  const form = el(
    'div',
    { class: 'decision', role: 'group', 'aria-label': `Decision for ${approver}` },
    el('p', {}, 'For the approver ', el('strong', {}, approver)),
    field('Reason (the model reads it if you deny)', reason),
    el(
      'div',
      { class: 'actions' },
      button('Approve', () => decide('approve', 'You approved the call.'), attributes('primary')),
      button('Deny', () => decide('deny', 'You denied the call.'), attributes('danger')),
    ),
    missing && missingRight(missing, note),
    el('div', { class: 'outcome' }),
  );
  return form;
}

/** Returns a notice that names a missing right. */
export function missingRight(right, id) {
  return el('p', { class: 'notice', id }, `You may not do this: you lack ${right}.`);
}
