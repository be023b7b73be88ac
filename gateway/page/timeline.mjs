// Shows the timeline of a Job.

import { badge, el, facts, link, longText, refill, time } from './dom.mjs';
import { indented, number, resourceType, shortened, size, visible, words } from './format.mjs';

/** Returns the timeline. `update` shows the items that have changed, and adds new ones. */
export function timeline() {
  const element = el('div', { class: 'timeline' });
  const groups = new Map();
  const items = new Map();

  const groupOf = (group) => {
    if (!groups.has(group.id)) {
      const list = el('ol', {});
      element.append(el('section', {}, el('h3', {}, group.heading), list));
      groups.set(group.id, list);
    }
    return groups.get(group.id);
  };
  const update = (conversation, changed) => {
    for (const group of conversation.groups) {
      const list = groupOf(group);
      for (const item of group.items) {
        const old = items.get(item.id);
        if (old && !changed.has(item)) continue;
        const shown = show(item);
        if (old) replace(old, shown);
        else list.append(shown);
        items.set(item.id, shown);
      }
    }
  };
  return { element, update };
}

/** Replaces the element of an item. Parts that a person has opened, and the focus, stay. */
function replace(old, shown) {
  const summaries = Array.from(old.querySelectorAll('summary'));
  const focused = summaries.indexOf(document.activeElement);
  for (const details of shown.querySelectorAll('details')) {
    const before = old.querySelector(`details[data-key="${details.dataset.key}"]`);
    if (before) details.open = before.open;
  }
  const key = focused >= 0 ? summaries[focused].parentElement.dataset.key : null;
  old.replaceWith(shown);
  if (key) shown.querySelector(`details[data-key="${key}"] > summary`)?.focus();
}

function show(item) {
  const [title, tone, ...content] = (KINDS[item.kind] ?? other)(item);
  return el(
    'li',
    { class: `item ${tone}`, id: `event-${item.id}` },
    el('div', { class: 'head' }, el('div', { class: 'title' }, title), time(item.time)),
    content,
  );
}

function part(key, summary, open, ...content) {
  return el('details', { 'data-key': key, open }, el('summary', {}, summary), ...content);
}

/** Returns arguments as they are sent. No character is invisible. */
export function argumentText(json) {
  return el('pre', { class: 'text code' }, visible(indented(json)));
}

/** The states of calls, as words with a colour. */
const CALL_STATES = {
  requested: ['Requested', 'plain'],
  ruled: ['Allowed', 'plain'],
  asks: ['Asks a person', 'wait'],
  held: ['Waits for a decision', 'wait'],
  approved: ['Approved', 'good'],
  denied: ['Not made', 'bad'],
  skipped: ['Skipped', 'plain'],
  running: ['Running', 'busy'],
  completed: ['Completed', 'good'],
  failed: ['Failed', 'bad'],
  lost: ['Result lost', 'bad'],
};

const VERDICTS = { Allow: ['Allowed', 'good'], Hold: ['Held', 'wait'], Deny: ['Denied', 'bad'] };

function call(item) {
  const { data, ruling, hold, state, decisions, result, child, progress, offloaded, because, fields } = item;
  const [text, tone] = CALL_STATES[state];
  const verdict = ruling && VERDICTS[ruling.verdict];
  const earlier = hold && ruling.verdict !== 'Hold' ? 'held, then ' : '';
  const { canonical, malformed } = data.arguments ?? {};
  const title = [el('code', { class: 'tool' }, visible(data.tool)), ' ', verdict && [badge(`Gate: ${earlier}${verdict[0].toLowerCase()}`, verdict[1]), ' '], badge(text, tone)];
  const notes = [
    ...((hold ?? ruling)?.reasons ?? []).map(({ layer, detail, approver }) => [`${words(layer)}: ${detail}`, approver && ` (approver: ${approver})`]),
    hold && ruling?.verdict === 'Deny' && ruling.reasons?.map(({ layer, detail }) => `${words(layer)}: ${detail}`).join(' '),
    ...decisions.map(({ approved, approver, by, reason }) => `${by} ${approved ? 'approved' : 'denied'} it for ${approver}${reason ? `: ${reason}` : '.'}`),
    because && `The call ${because} was not completed.`,
    child && ['Job ', link(['jobs', child.job], child.job), ` of the Skill ${child.skill}`],
    progress && state === 'running' && progressText(progress),
    offloaded && `The model reads an excerpt of ${size(offloaded.bytes)}.`,
  ].filter(Boolean);
  return [
    title,
    tone,
    notes.length > 0 && el('ul', { class: 'notes' }, notes.map((note) => el('li', {}, note))),
    malformed && el('p', {}, `The arguments cannot be used: ${malformed.reason}`),
    canonical && canonical.text !== '{}' && part('arguments', ['Arguments ', el('code', { class: 'hint' }, shortened(visible(canonical.text), 60))], false, argumentText(canonical.text)),
    result !== undefined && part('result', state === 'completed' ? 'Result' : 'Error', state !== 'completed', longText(result)),
    fields && Object.keys(fields).length > 0 && part('fields', 'Fields of the result', false, argumentText(JSON.stringify(fields))),
  ];
}

function progressText({ progress, total, message }) {
  const done = progress === undefined ? '' : total === undefined ? number(progress) : `${number(progress)} of ${number(total)}`;
  return [done, message].filter(Boolean).join(' – ');
}

function model({ state, answer, failure }) {
  if (state === 'running') return [['Model ', badge('Working', 'busy')], 'busy'];
  if (state === 'failed') return [['Model ', badge('Failed', 'bad')], 'bad', el('p', {}, `${words(failure.kind)}: ${failure.message}`)];
  const { model: name, tools = [], inputTokens, cachedTokens, outputTokens, cut } = answer;
  const tokens = inputTokens === undefined || inputTokens === null ? null
    : `${number(inputTokens)} tokens in${cachedTokens ? ` (${number(cachedTokens)} from the cache)` : ''}, ${number(outputTokens)} out`;
  const calls = tools.length > 0 ? ['Asks for ', tools.map((tool, at) => [at > 0 && ', ', el('code', {}, visible(tool))])] : 'Answers';
  return [['Model', name && ` ${name}`], 'plain', el('p', { class: 'line' }, calls, cut && ' (cut off at a limit)', tokens && el('span', { class: 'hint' }, ` · ${tokens}`))];
}

function question({ data, reply }) {
  const { text, choices = [] } = data.question ?? {};
  return [
    ['Question ', reply ? badge('Answered', 'good') : badge('Open', 'wait')],
    reply ? 'plain' : 'wait',
    longText(text ?? ''),
    choices.length > 0 && el('p', { class: 'hint' }, `Choices: ${choices.join(', ')}`),
    reply && el('div', { class: 'reply' }, el('p', { class: 'hint' }, `${reply.by} replied`), longText(reply.text)),
  ];
}

function gate({ data }) {
  const ruling = data.ruling;
  if (ruling === 'skipped') return [['Finalization gate ', badge('No judging model')], 'plain'];
  if (ruling === 'noNewEvidence') return [['Finalization gate ', badge('No new evidence', 'bad')], 'bad'];
  const attempt = ruling?.attempt ?? ruling?.formError ?? {};
  const text = ruling?.formError ? 'Wrong form' : attempt.passed ? 'Passed' : 'Not passed';
  return [['Finalization gate ', badge(text, attempt.passed ? 'good' : 'bad')], attempt.passed ? 'good' : 'bad', attemptFacts(attempt)];
}

/** Returns the details of a ruling of the finalization gate. */
export function attemptFacts({ score, reasons = [], missingFields = [], suggestedAction }) {
  const pairs = [
    score !== undefined && ['Score', score.toFixed(2)],
    ...reasons.map(({ code, detail }) => [words(code), detail]),
    missingFields.length > 0 && ['Missing fields', missingFields.join(', ')],
    suggestedAction && ['Suggested', words(suggestedAction)],
  ].filter(Boolean);
  return pairs.length > 0 && facts(pairs);
}

function finished({ data: { outcome = {} } }) {
  const isGood = outcome.code === 'Succeeded';
  return [[badge(words(outcome.code ?? 'Ended'), isGood ? 'good' : 'bad')], isGood ? 'good' : 'bad', outcome.message && el('p', {}, outcome.message)];
}

function names(list) {
  return list.map((name, at) => [at > 0 && ', ', el('code', {}, visible(name))]);
}

/** Returns an item of one line. */
function line(title, ...text) {
  return [title, 'plain', text.length > 0 && el('p', { class: 'line' }, ...text)];
}

const KINDS = {
  'tool.requested': call,
  'model.requested': model,
  'user.asked': question,
  'gate.ruled': gate,
  finished,
  'epoch.started': ({ data }) => line(data.epoch > 1 ? `A worker goes on (epoch ${data.epoch})` : 'A worker begins', data.afterDisruption && 'The worker before it was disrupted.'),
  'job.attached': () => line('The Job uses this log'),
  'catalogue.fixed': ({ data: { tools = [] } }) => [
    `${number(tools.length)} tools`, 'plain', tools.length > 0 && part('tools', 'Names', false, el('p', { class: 'line' }, names(tools))),
  ],
  'resources.bound': ({ data: { resources = [] } }) => line(
    resources.length === 0 ? 'No resources' : 'Resources',
    resources.map((bound, at) => [at > 0 && ', ', el('code', {}, bound.name), ` (${resourceType(bound.type)}${bound.rendering ? `: ${bound.rendering}` : ''})`]),
  ),
  'tools.selected': ({ data }) => [`${number(data.tools?.length)} of ${number(data.of)} tools are shown to the model`, 'plain', part('tools', 'Names', false, el('p', { class: 'line' }, names(data.tools ?? [])))],
  'context.gathered': ({ data: { parts = [] } }) => line('Context', parts.map(({ kind, of, bytes, fault }, at) => [at > 0 && ', ', `${words(kind)} of ${of} (${fault ?? size(bytes)})`])),
  'intent.detected': ({ data: { intent = {}, missing = [] } }) => [
    ['Intent ', intent.outOfDomain ? badge('Out of the domain', 'bad') : badge(intent.id ?? 'None', 'good')],
    intent.outOfDomain ? 'bad' : 'plain',
    Object.keys(intent.entities ?? {}).length > 0 && facts(Object.entries(intent.entities).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])),
    missing.length > 0 && el('p', {}, `Not in the goal: ${missing.join(', ')}`),
  ],
  'conversation.opened': ({ data }) => [
    'The conversation is open', 'plain', part('goal', 'Goal and limits', false, longText(data.goal ?? ''), limits(data.limits ?? {})),
  ],
  'user.message': ({ data }) => [`Message of ${data.by}`, 'plain', longText(data.text ?? '')],
  'user.replied': ({ data }) => [`Reply of ${data.by}`, 'plain', longText(data.text ?? '')],
  'subgoal.done': ({ data }) => line(`Step ${data.step} ${data.notApplicable ? 'does not apply' : 'is done'}`),
  'reply.polished': ({ data }) => line(data.polished ? 'The answer is polished' : 'The answer is kept as it is'),
  'limits.lowered': () => line('The limits are lowered'),
  'tools.blocked': ({ data }) => line('Tools are blocked', names(data.tools ?? [])),
  'tools.restricted': () => line('The tool policy of the namespace has changed'),
  'catalogue.drifted': ({ data }) => [
    ['Tools ', badge('Changed', 'bad')], 'bad',
    facts(['changed', 'missing', 'added'].filter((kind) => data[kind]?.length > 0).map((kind) => [words(kind), names(data[kind])])),
  ],
  'catalogue.unpinned': ({ data }) => [['Tools ', badge('Differ from the pins', 'bad')], 'bad', argumentText(JSON.stringify(data.tools ?? []))],
  'feature.tested': ({ data: { result = {} } }) => [
    [el('code', {}, result.name ?? ''), ' ', badge(result.passed ? 'Passed' : 'Failed', result.passed ? 'good' : 'bad')], result.passed ? 'good' : 'bad', result.reason && el('p', {}, result.reason),
  ],
  'limit.hit': ({ data }) => [['Limit ', badge(words(data.code ?? ''), 'bad')], 'bad', el('p', {}, data.message ?? '')],
  'directive.received': ({ data }) => line(`Directive: ${words(data.directive ?? '')}`),
  parked: ({ data }) => line(`Parked: ${words(data.reason ?? '')}`),
};

function limits({ steps, toolCalls, tokens, durationSeconds }) {
  return facts([['Model calls', number(steps)], ['Tool calls', number(toolCalls)], ['Tokens', number(tokens)], ['Seconds', number(durationSeconds)]]);
}

/** Shows an event that this page does not know: a later version of the server may have it. */
function other({ kind, data }) {
  return [words(kind.replace(/\./gu, ' ')), 'plain', Object.keys(data).length > 0 && part('data', 'Data', false, argumentText(JSON.stringify(data)))];
}

/** Shows that there are no events. */
export function emptyTimeline(element, text) {
  refill(element, el('p', { class: 'hint' }, text));
}
