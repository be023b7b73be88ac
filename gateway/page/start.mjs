// The form that starts a Job. Its fields are the resources of the Skill.

import { list, post, randomKey } from './api.mjs';
import { el, failure, field, link, refill } from './dom.mjs';
import { resourceType } from './format.mjs';

/** What the value of a resource is, by its type. */
const VALUES = {
  filesystem: 'On this machine: a path below the root of the server; add :ro to keep it unchanged. On a cluster: claim:NAME or claim:NAME/PATH, with writable-claim: if the Job may write.',
  api_endpoint: 'The URL of the API.',
  credential: 'Where the secret is, not the secret: on this machine @FILE, on a cluster secret:NAME/KEY.',
  connection_string: 'Where the secret is, not the secret: on this machine @FILE, on a cluster secret:NAME/KEY.',
};

const LIMITS = [
  ['steps', 'Model calls'],
  ['toolCalls', 'Tool calls'],
  ['tokens', 'Tokens'],
];

/** Shows the form. Without a name in the address, a person chooses the Skill first. */
export async function start({ body, setTitle, name, query, signal }) {
  setTitle('Start a Job');
  const skills = (await list(['skills'], signal)).filter(({ fault }) => !fault);
  if (signal.aborted) return;
  const continues = query.get('continues');
  const choice = el('select', { name: 'skill' }, skills.map((skill) => el('option', { value: skill.name }, skill.displayName ? `${skill.displayName} (${skill.name})` : skill.name)));
  if (skills.length === 0) {
    refill(body, el('p', {}, 'There is no Skill that a Job can use. ', link(['skills'], 'The Skills'), ' says why.'));
    return;
  }
  if (name && !skills.some((skill) => skill.name === name)) throw new Error(`No Job can use a Skill ${name}.`);
  if (name) choice.value = name;

  const goal = el('textarea', { name: 'goal', rows: 4, required: true });
  const bindings = el('div', { class: 'bindings' });
  const limits = LIMITS.map(([key, label]) => [key, field(label, el('input', { type: 'number', min: 1, inputmode: 'numeric', name: key }))]);
  const time = el('input', { name: 'duration', placeholder: '30m', pattern: '([1-9][0-9]*(h|m|s))+' });
  const fault = el('div', {});
  const submit = el('button', { class: 'primary' }, 'Start the Job');
  const showBindings = () => {
    const { resources = [], description } = skills.find((skill) => skill.name === choice.value);
    refill(bindings, description && el('p', { class: 'hint' }, description), resources.map(binding));
  };
  choice.addEventListener('change', showBindings);
  showBindings();

  let sent = { text: '', key: '' };
  const send = async (event) => {
    event.preventDefault();
    const request = { goal: goal.value, skillSlug: choice.value, resources: values(bindings) };
    const lowered = { ...values(limitFields), ...(time.value && { duration: time.value }) };
    for (const [key] of LIMITS) if (lowered[key]) lowered[key] = Number(lowered[key]);
    if (Object.keys(lowered).length > 0) request.limits = lowered;
    if (continues) request.continues = continues;
    // The same request again, after an error of the network, starts no second Job.
    if (sent.text !== JSON.stringify(request)) sent = { text: JSON.stringify(request), key: randomKey() };
    submit.disabled = true;
    refill(fault);
    try {
      const { job } = await (await post(['chat'], request, { 'Idempotency-Key': sent.key })).json();
      location.hash = `#/jobs/${encodeURIComponent(job)}`;
    } catch (error) {
      refill(fault, failure(error));
      submit.disabled = false;
    }
  };
  const limitFields = el('div', { class: 'row' }, limits.map(([, shown]) => shown));
  refill(
    body,
    el(
      'form',
      { class: 'panel', on: { submit: send } },
      field('Skill', choice),
      continues && el('p', {}, 'Continues ', link(['jobs', continues], continues)),
      field('Goal', goal),
      bindings,
      el('details', {}, el('summary', {}, 'Lower limits'), limitFields, field('Working time', time, 'Such as 30m or 1h30m.')),
      fault,
      submit,
    ),
  );
  if (continues) choice.disabled = true;
}

function binding({ name, type, required, description }) {
  const input = el('input', { name, required, spellcheck: 'false', autocomplete: 'off', type: type === 'api_endpoint' ? 'url' : 'text' });
  const label = `${name} (${resourceType(type)}, ${required ? 'required' : 'optional'})`;
  return field(label, input, [description, VALUES[type]].filter(Boolean).join(' '));
}

/** Returns the values of the fields that are not empty. */
function values(form) {
  const inputs = Array.from(form.querySelectorAll('input')).filter((input) => input.value.trim() !== '');
  return Object.fromEntries(inputs.map((input) => [input.name, input.value.trim()]));
}
