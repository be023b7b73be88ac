// The list of Skills, with their conditions, features, resources and tools.

import { list } from './api.mjs';
import { badge, button, el, facts, failure, link, longText, newId, refill } from './dom.mjs';
import { resourceType } from './format.mjs';

/** Shows the Skills. Each read of the list reads the Skills again. */
export async function skills({ body, setTitle, signal }) {
  setTitle('Skills');
  const items = await list(['skills'], signal);
  if (signal.aborted) return;
  refill(body, items.length === 0 ? el('p', {}, 'There are no Skills.') : el('div', { class: 'cards' }, items.map(card)));
}

function card(skill) {
  const id = newId('skill');
  return el(
    'article',
    { class: 'panel', 'aria-labelledby': id },
    el('div', { class: 'head' }, el('h2', { id }, skill.displayName ?? skill.name), state(skill)),
    skill.displayName && el('p', { class: 'key' }, skill.name),
    skill.description && el('p', {}, skill.description),
    skill.fault && el('div', { class: 'notice bad' }, el('strong', {}, 'No Job can use this Skill.'), longText(skill.fault)),
    conditions(skill.conditions ?? []),
    features(skill.features ?? []),
    resources(skill.resources ?? []),
    !skill.fault && tools(skill.name),
    el(
      'p',
      { class: 'actions' },
      !skill.fault && link(['start', skill.name], 'Start a Job'),
      el('a', { href: `#/jobs?skill=${encodeURIComponent(skill.name)}` }, 'Its Jobs'),
    ),
  );
}

function state(skill) {
  if (skill.fault) return badge('Not usable', 'bad');
  const ready = (skill.conditions ?? []).find(({ type }) => type === 'Ready');
  if (!ready || ready.status === 'True') return badge('Ready', 'good');
  return badge(ready.status === 'False' ? 'Not ready' : 'Not known to be ready', ready.status === 'False' ? 'bad' : 'wait');
}

/** A condition of these types is a fault while it is true. */
const BAD_IF_TRUE = ['Stalled', 'Reconciling'];

function conditions(all) {
  if (all.length === 0) return null;
  const isGood = ({ type, status }) => (BAD_IF_TRUE.includes(type) ? status !== 'True' : status === 'True');
  const bad = all.filter((condition) => !isGood(condition)).length;
  const items = all.map((condition) => el(
    'li',
    {},
    badge(`${condition.type}: ${condition.status}`, isGood(condition) ? 'good' : condition.status === 'Unknown' ? 'wait' : 'bad'),
    ` ${condition.reason}`,
    condition.message && el('p', { class: 'hint' }, condition.message),
  ));
  const summary = bad === 0 ? `Conditions (${all.length}, all good)` : `Conditions (${all.length}, ${bad} not good)`;
  return el('details', { open: bad > 0 }, el('summary', {}, summary), el('ul', { class: 'list' }, items));
}

function features(all) {
  if (all.length === 0) return null;
  const result = ({ passed }) => (passed === undefined ? badge('Not tested') : passed ? badge('Passed', 'good') : badge('Failed', 'bad'));
  const items = all.map((feature) => el(
    'li',
    {},
    el('strong', {}, feature.name),
    ' ',
    result(feature),
    feature.optional && [' ', badge('Optional')],
    facts([
      ['Test', feature.testScenario],
      ['Expected', feature.expectedResult],
      ...(feature.reason ? [['Result', feature.reason]] : []),
    ]),
  ));
  return el('details', {}, el('summary', {}, `Features (${all.length})`), el('ul', { class: 'list' }, items));
}

function resources(all) {
  if (all.length === 0) return null;
  const items = all.map((resource) => el(
    'li',
    {},
    el('strong', {}, resource.name),
    `: ${resourceType(resource.type)}, ${resource.required ? 'required' : 'optional'}`,
    resource.description && el('p', { class: 'hint' }, resource.description),
  ));
  return el('details', {}, el('summary', {}, `Resources (${all.length})`), el('ul', { class: 'list' }, items));
}

/** Returns the tools, which are read when a person asks for them: the server of the Skill may have to start. */
function tools(skill) {
  const shown = el('div', {});
  const show = async () => {
    refill(shown, el('p', { class: 'hint' }, 'The tools are read…'));
    try {
      const items = (await list(['skills', skill, 'tools'])).map(({ name, description }) => el(
        'li',
        {},
        el('code', {}, name),
        description && el('p', { class: 'hint' }, description),
      ));
      refill(shown, items.length === 0 ? el('p', {}, 'The Skill has no tools of a server that its policy allows.') : el('ul', { class: 'list' }, items));
    } catch (error) {
      refill(shown, failure(error), button('Try again', show));
    }
  };
  let isRead = false;
  const toggled = ({ target }) => {
    if (!target.open || isRead) return;
    isRead = true;
    show();
  };
  return el('details', { on: { toggle: toggled } }, el('summary', {}, 'Tools'), shown);
}
