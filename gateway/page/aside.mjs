// The side of a Job: its budgets, gates, workflows and children.

import { list } from './api.mjs';
import { badge, button, el, facts, failure, link, newId, refill } from './dom.mjs';
import { duration, number, words } from './format.mjs';
import { Conversation } from './fold.mjs';
import { attemptFacts } from './timeline.mjs';

/** Returns the side. `update` shows a status. */
export function aside() {
  const budgets = el('div', {});
  const gates = el('div', {});
  const workflows = el('div', {});
  const children = childTree();
  const remarks = el('div', {});
  const element = el('aside', { 'aria-label': 'State of the Job' }, remarks, budgets, workflows, children.element, gates);
  const update = (status, conversation) => {
    refill(remarks, remarkPanel([...(status.remarks ?? []), ...(status.strayReplies ?? [])]));
    refill(budgets, budgetPanel(status.usage ?? {}, conversation.limits));
    refill(gates, gatePanel(status.gates ?? {}));
    refill(workflows, (status.workflows ?? []).length > 0 && workflowPanel(status.workflows));
    children.update(conversation.children);
  };
  return { element, update };
}

function panel(title, ...content) {
  const id = newId('panel');
  return el('section', { class: 'panel', 'aria-labelledby': id }, el('h2', { id }, title), ...content);
}

function remarkPanel(remarks) {
  return remarks.length > 0 && panel('Remarks', el('ul', { class: 'notes' }, remarks.map((remark) => el('li', {}, remark))));
}

/** Returns the bars of the budgets. What children spend counts too. */
function budgetPanel({ llmCalls = {}, inputTokens = 0, outputTokens = 0, toolCalls = 0, seconds = 0, children = {} }, limits) {
  const rows = [
    ['Model calls', (llmCalls.plan ?? 0) + (children?.steps ?? 0), limits?.steps, number],
    ['Tool calls', toolCalls + (children?.toolCalls ?? 0), limits?.toolCalls, number],
    ['Tokens', inputTokens + outputTokens + (children?.tokens ?? 0), limits?.tokens, number],
    ['Working time', seconds + (children?.seconds ?? 0), limits?.durationSeconds, duration],
  ];
  return panel('Budgets', rows.map(([name, used, limit, text]) => {
    const id = newId('budget');
    const shown = limit === undefined ? text(used) : `${text(used)} of ${text(limit)}`;
    const tone = limit !== undefined && used >= limit * 0.9 ? 'near' : '';
    return el(
      'div',
      { class: 'budget' },
      el('span', { id }, name),
      el('span', {}, shown),
      limit !== undefined && el('progress', { class: tone, max: limit, value: Math.min(used, limit), 'aria-labelledby': id }),
    );
  }));
}

function gatePanel({ intent, preTool = {}, finalization = {} }) {
  const { allowed = 0, held = 0, denied = 0 } = preTool;
  const { attempts = [], formErrors = 0, passed, skipped } = finalization;
  const answer = passed ? badge('Passed', 'good') : skipped ? badge('No judging model') : attempts.length > 0 ? badge('Not passed', 'bad') : badge('No answer yet');
  return panel(
    'Gates',
    facts([
      ...(intent ? [['Intent', intent.outOfDomain ? badge('Out of the domain', 'bad') : intent.id ?? 'None']] : []),
      ['Tool calls', `${number(allowed)} allowed, ${number(held)} held, ${number(denied)} denied`],
      ['Answer', answer, formErrors > 0 && ` ${number(formErrors)} of the wrong form`],
    ]),
    attempts.length > 0 && el('ol', { class: 'attempts' }, attempts.map((attempt) => el(
      'li',
      {},
      badge(attempt.passed ? 'Passed' : 'Not passed', attempt.passed ? 'good' : 'bad'),
      attemptFacts(attempt),
    ))),
  );
}

function workflowPanel(workflows) {
  return panel('Workflows', workflows.map(({ name, required, done = [], notApplicable = [], open = [] }) => {
    const id = newId('workflow');
    const closed = done.length + notApplicable.length;
    const total = closed + open.length;
    const step = (mark, text) => (item) => el('li', {}, el('span', { class: 'mark', role: 'img', 'aria-label': text }, mark), ` ${item}`);
    return el(
      'div',
      { class: 'workflow' },
      el('p', {}, el('strong', { id }, name), required && [' ', badge('Required')], ` ${closed} of ${total}`),
      el('progress', { max: total || 1, value: closed, 'aria-labelledby': id }),
      el('ul', { class: 'list' }, done.map(step('✓', 'Done:')), notApplicable.map(step('–', 'Does not apply:')), open.map(step('○', 'Open:'))),
    );
  }));
}

/** Returns the tree of children. The children of a child are read when a person asks for them. */
function childTree() {
  const element = el('div', { hidden: true });
  const top = el('ul', { class: 'tree' });
  element.append(panel('Children', top));
  let shown = '';
  const update = (children) => {
    element.hidden = children.length === 0;
    // The parts of the tree that a person has opened stay until a child changes.
    const state = JSON.stringify(children.map(({ job, end }) => [job, end?.code]));
    if (state === shown) return;
    shown = state;
    refill(top, children.map(node));
  };
  return { element, update };
}

function node({ job, skill, end }) {
  const below = el('div', {});
  const id = newId('child');
  const show = button('Show its children', async () => {
    show.disabled = true;
    try {
      const conversation = new Conversation();
      for (const event of await list(['jobs', job, 'projections', 'timeline'])) conversation.apply(event);
      const { children } = conversation;
      refill(below, children.length === 0 ? el('p', { class: 'hint' }, 'It has no children.') : el('ul', { class: 'tree' }, children.map(node)));
      show.remove();
    } catch (error) {
      show.disabled = false;
      refill(below, failure(error));
    }
  }, { class: 'quiet', 'aria-describedby': id });
  const state = end ? badge(words(end.code), end.code === 'Succeeded' ? 'good' : 'bad') : badge('Running', 'busy');
  return el('li', {}, link(['jobs', job], skill), ' ', state, el('span', { class: 'key', id }, job), show, below);
}
