// One Job, live: its timeline, what it asks of people, and its state.

import { get, post } from './api.mjs';
import { aside } from './aside.mjs';
import { announce, button, el, failure, field, longText, newId, phaseBadge, refill } from './dom.mjs';
import { follow, sleep } from './events.mjs';
import { Conversation } from './fold.mjs';
import { hasEnded, shortened, words } from './format.mjs';
import { missingRight, openRequests } from './people.mjs';
import { argumentText, emptyTimeline, timeline } from './timeline.mjs';

/** The time without events after which the state is read again, in milliseconds. */
const SETTLE = 200;

/** The interval between two reads of the state where the caller may not see the events, in milliseconds. */
const POLL = 5000;

/** The interval between two reads of a state that follows the events, in milliseconds. */
const POLL_BEHIND = 2000;

/** The interval between two reads of the state after the last event, in milliseconds. */
const POLL_AT_END = 1000;

/** Shows a Job. */
export async function job({ body, setTitle, name, signal }) {
  setTitle(name);
  const conversation = new Conversation();
  const parts = { header: el('div', {}), actions: actions(name, refresh), result: el('div', {}), connection: el('p', { class: 'hint' }), fault: el('div', {}) };
  const requests = openRequests(name, refresh);
  const [events, side, message] = [timeline(), aside(), messageForm(name, refresh)];
  let [isReading, isStale, timer, latest, requested] = [false, false, 0, null, {}];

  /** Reads the state and the open requests. Events in between lead to one more read, and so does a state that lacks the latest event. */
  async function refresh() {
    if (isReading) {
      isStale = true;
      return;
    }
    isReading = true;
    try {
      const [state, open] = await Promise.all([get(['jobs', name], signal), get(['jobs', name, 'projections', 'requests'], signal)]);
      if (!signal.aborted) showState(state, open);
      refill(parts.fault);
    } catch (error) {
      if (!signal.aborted) refill(parts.fault, failure(error));
    }
    isReading = false;
    if (signal.aborted) return;
    const isBehind = latest && !hasEnded(latest.phase) && conversation.isAhead(latest, requested);
    if (isStale || isBehind) {
      clearTimeout(timer);
      timer = setTimeout(refresh, isStale ? SETTLE : POLL_BEHIND);
    }
    isStale = false;
  }

  function showState({ skill, goal, status }, open) {
    [latest, requested] = [status, open];
    setTitle(shortened(goal, 100) || name);
    refill(parts.header, header(name, skill, goal, status));
    const ended = hasEnded(status.phase);
    parts.actions.update(ended, skill, open.missing ?? {});
    message.update(ended, open.missing ?? {});
    requests.update(ended ? {} : open);
    side.update(status, conversation);
    showResult(parts.result, status, conversation.end);
  }

  const onEvents = (all) => {
    const changed = new Set(all.flatMap((event) => conversation.apply(event)));
    events.update(conversation, changed);
    // The limits and the children come from events.
    if (latest) side.update(latest, conversation);
    report(all);
    clearTimeout(timer);
    timer = setTimeout(refresh, SETTLE);
  };
  const onState = (state) => {
    const texts = { live: 'Live.', waiting: 'The connection is lost. It is made again…', ended: 'All events are shown.' };
    refill(parts.connection, texts[state]);
    if (state === 'ended') refresh();
  };

  refill(
    body,
    parts.header,
    parts.actions.element,
    parts.fault,
    requests.element,
    parts.result,
    el(
      'div',
      { class: 'columns' },
      el('section', { class: 'main', 'aria-labelledby': 'timeline' }, el('h2', { id: 'timeline' }, 'Timeline'), parts.connection, events.element, message.element),
      side.element,
    ),
  );
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  await refresh();
  try {
    await follow(name, { onEvents, onState, signal });
  } catch (error) {
    refill(parts.connection);
    emptyTimeline(events.element, `The events cannot be shown: ${error.message}`);
    // There is no such Job.
    if (error.status === 404) return;
    while (!signal.aborted) {
      await sleep(POLL, signal);
      await refresh();
    }
  }
  // The status of a Job on a cluster has its end later than its events.
  while (!signal.aborted && !hasEnded(latest?.phase)) {
    await sleep(POLL_AT_END, signal);
    await refresh();
  }
}

/** Says the latest change that matters to a person. */
function report(events) {
  const texts = {
    'tool.completed': 'A tool call is completed.', 'tool.failed': 'A tool call has failed.', 'tool.held': 'A tool call is held.',
    'user.asked': 'The Job asks a question.', 'conversation.finished': 'The Job has ended.',
  };
  const latest = events.findLast(({ type }) => Object.hasOwn(texts, type));
  if (latest) announce(texts[latest.type]);
}

function header(name, skill, goal, { phase, outcome }) {
  return [
    el('p', { class: 'state' }, phaseBadge(phase), ' Skill ', el('strong', {}, skill), ' ', el('span', { class: 'key' }, name)),
    outcome && outcome.code !== 'Succeeded' && el('div', { class: 'notice bad' }, `${words(outcome.code)}: ${outcome.message ?? ''}`),
    shortened(goal, 100) !== goal && el('details', {}, el('summary', {}, 'The whole goal'), longText(goal)),
  ];
}

/** Shows the answer. That of a Job that has not succeeded is a draft, which no gate has passed. */
function showResult(element, { phase, result }, end) {
  if (phase !== 'Succeeded') return;
  const { text = '', fields = {} } = end?.result ?? result ?? {};
  refill(
    element,
    el(
      'section',
      { class: 'panel good', 'aria-labelledby': 'answer' },
      el('h2', { id: 'answer' }, 'Answer'),
      longText(text, 'prose'),
      Object.keys(fields).length > 0 && el('details', { open: true }, el('summary', {}, 'Fields'), argumentText(JSON.stringify(fields))),
    ),
  );
}

/** Returns the actions on the whole Job. */
function actions(name, changed) {
  const element = el('div', { class: 'actions' });
  const note = newId('missing');
  let shown = '';
  const update = (ended, skill, { cancel }) => {
    const state = JSON.stringify([ended, cancel]);
    if (state === shown) return;
    shown = state;
    refill(element, ended
      ? el('a', { class: 'button', href: `#/start/${encodeURIComponent(skill)}?continues=${encodeURIComponent(name)}` }, 'Continue in a new Job')
      : [button('Cancel the Job', () => confirmCancel(name, changed), { class: 'danger', disabled: Boolean(cancel), 'aria-describedby': cancel && note }), cancel && missingRight(cancel, note)]);
  };
  return { element, update };
}

/** Asks before a Job is cancelled. */
function confirmCancel(name, changed) {
  const fault = el('div', {});
  const cancel = async () => {
    try {
      await post(['jobs', name, 'cancel'], {});
      dialog.close();
      announce('The Job is being cancelled.');
      changed();
    } catch (error) {
      refill(fault, failure(error));
    }
  };
  // The focus begins here, so that one key too many does nothing.
  const keep = button('Keep it', () => dialog.close());
  const dialog = el(
    'dialog',
    { 'aria-labelledby': 'cancel', on: { close: () => dialog.remove() } },
    el('h2', { id: 'cancel' }, 'Cancel this Job?'),
    el('p', {}, 'It ends after its current step. This cannot be undone. A new Job can continue it.'),
    fault,
    el('div', { class: 'actions' }, keep, button('Cancel the Job', cancel, { class: 'danger' })),
  );
  document.body.append(dialog);
  dialog.showModal();
  keep.focus();
}

/** Returns the form of messages that answer no question. */
function messageForm(name, changed) {
  const text = el('textarea', { rows: 2, required: true });
  const submit = el('button', {}, 'Send the message');
  const note = el('div', {});
  const send = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await post(['jobs', name, 'replies'], { text: text.value });
      text.value = '';
      refill(note, el('p', { class: 'hint' }, 'The message is sent. The model reads it before its next step.'));
    } catch (error) {
      refill(note, failure(error));
    }
    submit.disabled = false;
    changed();
  };
  const element = el('form', { class: 'panel message', hidden: true, on: { submit: send } }, field('Message to the Job', text), submit, note);
  const update = (ended, { reply }) => {
    element.hidden = ended;
    text.disabled = Boolean(reply);
    submit.disabled = Boolean(reply);
    if (reply) refill(note, missingRight(reply));
  };
  return { element, update };
}
