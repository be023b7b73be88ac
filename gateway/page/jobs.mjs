// The list of Jobs.

import { list } from './api.mjs';
import { announce, el, failure, link, phaseBadge, refill, time } from './dom.mjs';
import { sleep } from './events.mjs';
import { awaitsPeople, hasEnded, shortened } from './format.mjs';

/** The time between two reads of the list, in milliseconds. */
const INTERVAL = 5000;

const STATES = {
  all: ['All', () => true],
  people: ['Waiting for a person', ({ phase }) => awaitsPeople(phase)],
  active: ['Active', ({ phase }) => !hasEnded(phase)],
  ended: ['Ended', ({ phase }) => hasEnded(phase)],
};

/** Shows the Jobs of the namespace. The filter is in the address, so that it can be kept as a bookmark. */
export async function jobs({ body, setTitle, query, signal }) {
  setTitle('Jobs');
  const text = el('input', { type: 'search', 'aria-label': 'Filter by text', placeholder: 'Goal, Skill or key', value: query.get('text') ?? '' });
  const skill = el('select', { 'aria-label': 'Skill' });
  const state = el('select', { 'aria-label': 'State' }, Object.entries(STATES).map(([value, [label]]) => el('option', { value }, label)));
  state.value = Object.hasOwn(STATES, query.get('state') ?? '') ? query.get('state') : 'all';
  const count = el('p', { class: 'hint' });
  const rows = el('tbody', { role: 'rowgroup' });
  const fault = el('div');
  let all = [];
  let wanted = query.get('skill') ?? '';

  const showList = () => {
    const words = text.value.toLowerCase().split(/\s+/u);
    const matches = (item) => {
      const own = `${item.goal} ${item.skill} ${item.job}`.toLowerCase();
      return STATES[state.value][1](item) && (!wanted || item.skill === wanted) && words.every((word) => own.includes(word));
    };
    const shown = all.filter(matches);
    const focused = document.activeElement?.closest?.('[data-key]')?.getAttribute('data-key');
    refill(rows, shown.map(row));
    if (focused) rows.querySelector(`[data-key="${CSS.escape(focused)}"] a`)?.focus();
    refill(count, all.length === 0 ? 'There are no Jobs yet.' : `${shown.length} of ${all.length} Jobs`);
  };
  const showSkills = () => {
    const names = [...new Set([...all.map((item) => item.skill), ...(wanted ? [wanted] : [])])].sort();
    if (names.length + 1 === skill.options.length) return;
    refill(skill, el('option', { value: '' }, 'All Skills'), names.map((name) => el('option', { value: name }, name)));
    skill.value = wanted;
  };
  const changed = () => {
    wanted = skill.value;
    const filter = new URLSearchParams();
    if (text.value) filter.set('text', text.value);
    if (wanted) filter.set('skill', wanted);
    if (state.value !== 'all') filter.set('state', state.value);
    // This does not navigate: the view stays, with the focus in the filter.
    history.replaceState(null, '', `#/jobs${filter.size > 0 ? `?${filter}` : ''}`);
    showList();
    announce(count.textContent);
  };
  for (const input of [text, skill, state]) input.addEventListener('input', changed);

  refill(
    body,
    el('form', { class: 'filter', role: 'search', 'aria-label': 'Filter', on: { submit: (event) => event.preventDefault() } }, text, skill, state),
    fault,
    count,
    table(rows),
  );
  while (!signal.aborted) {
    if (!document.hidden) {
      try {
        all = (await list(['jobs'], signal)).sort(newestFirst);
        if (signal.aborted) return;
        refill(fault);
        showSkills();
        showList();
      } catch (error) {
        if (signal.aborted) return;
        refill(fault, failure(error));
      }
    }
    await sleep(INTERVAL, signal);
  }
}

function newestFirst(one, other) {
  return (other.created ?? '').localeCompare(one.created ?? '') || other.job.localeCompare(one.job);
}

// The roles stay where the style shows the rows as cards.
function table(rows) {
  const header = ['Goal', 'Phase', 'Skill', 'Started'].map((name) => el('th', { role: 'columnheader', scope: 'col' }, name));
  return el(
    'table',
    { role: 'table', 'aria-label': 'Jobs' },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, header)),
    rows,
  );
}

function row(item) {
  const cell = (label, ...children) => el('td', { role: 'cell', 'data-label': label }, ...children);
  return el(
    'tr',
    { role: 'row', 'data-key': item.job },
    cell('Goal', link(['jobs', item.job], shortened(item.goal) || item.job), el('span', { class: 'key' }, item.job)),
    cell('Phase', phaseBadge(item.phase)),
    cell('Skill', item.skill),
    cell('Started', item.created ? time(item.created, true) : '–'),
  );
}
