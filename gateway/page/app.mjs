// The frame of the page: the person's session, and the view of each address.

import { forget, get, hasToken, setNamespace, setToken, takeToken, namespace } from './api.mjs';
import { announce, button, el, failure, field, fill, refill } from './dom.mjs';
import { job } from './job.mjs';
import { jobs } from './jobs.mjs';
import { skills } from './skills.mjs';
import { start } from './start.mjs';

const main = document.getElementById('main');
const VIEWS = { jobs: (name) => (name ? job : jobs), skills: () => skills, start: () => start };

/** Stops what the current view does. */
let current = new AbortController();

/** Decodes a part of the address. One that cannot be decoded names nothing. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** Returns the parts of the address. */
function route() {
  const [path, query = ''] = location.hash.replace(/^#\/?/u, '').split('?', 2);
  const [view, name = ''] = path.split('/').map(decoded);
  return { view: Object.hasOwn(VIEWS, view) ? view : 'jobs', name, query: new URLSearchParams(query) };
}

/** Shows the view of the address. */
async function show() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const { view, name, query } = route();
  for (const item of document.querySelectorAll('#nav a')) {
    const isCurrent = item.getAttribute('href') === `#/${view}`;
    if (isCurrent) item.setAttribute('aria-current', 'page');
    else item.removeAttribute('aria-current');
  }
  const heading = el('h1', { tabindex: '-1' });
  const body = el('div', { class: 'view' });
  refill(main, heading, body);
  const setTitle = (text) => {
    refill(heading, text);
    document.title = `${heading.textContent} · Bloomery`;
  };
  try {
    await VIEWS[view](name)({ body, setTitle, name, query, signal });
  } catch (error) {
    if (signal.aborted) return;
    if (!heading.textContent) setTitle('Error');
    fill(body, failure(error));
  }
}

/** Moves the focus to the new view, so that keyboards and screen readers begin there. */
async function navigate() {
  const shown = show();
  main.querySelector('h1')?.focus();
  window.scrollTo(0, 0);
  await shown;
}

/** Asks for a token. */
function askForToken(reason) {
  current.abort();
  document.getElementById('nav').hidden = true;
  refill(document.getElementById('session'));
  const input = el('input', { type: 'password', name: 'token', required: true, autocomplete: 'off', spellcheck: 'false' });
  const hint = 'On a cluster: a token of yours for its API, such as kubectl create token prints. On this machine: the token that bloomery serve printed. This tab keeps it until you close it.';
  const send = (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    begin();
  };
  document.title = 'Sign in · Bloomery';
  refill(
    main,
    el('h1', { tabindex: '-1' }, 'Sign in'),
    el(
      'div',
      { class: 'view' },
      reason && failure({ message: reason }),
      el('form', { class: 'panel', on: { submit: send } }, field('Token', input, hint), el('button', { class: 'primary' }, 'Sign in')),
    ),
  );
  input.focus();
}

/** Shows who the person is, and the namespace where there are several. */
function showSession(session) {
  const signOut = button('Sign out', () => {
    forget();
    askForToken();
  }, { class: 'quiet' });
  refill(document.getElementById('session'), session.choosesNamespace && namespaceForm(session), el('span', {}, session.user), hasToken() && signOut);
}

/** Returns the field of the namespace. */
function namespaceForm(session) {
  const input = el('input', { name: 'namespace', value: namespace() || session.namespace, 'aria-label': 'Namespace', spellcheck: 'false', autocomplete: 'off' });
  const send = (event) => {
    event.preventDefault();
    setNamespace(input.value.trim());
    history.replaceState(null, '', '#/jobs');
    announce(`Namespace ${input.value.trim()}`);
    begin();
  };
  return el('form', { class: 'inline', on: { submit: send } }, input, el('button', { class: 'quiet' }, 'Use namespace'));
}

/** Finds out who the person is, and shows the view. */
async function begin() {
  try {
    showSession(await get(['session']));
  } catch (error) {
    if (error.status === 401) return;
    const again = button('Try again', () => {
      // The namespace may be what the server refuses.
      setNamespace('');
      begin();
    });
    refill(main, el('h1', {}, 'Error'), el('div', { class: 'view' }, failure(error), again));
    return;
  }
  document.getElementById('nav').hidden = false;
  await navigate();
}

takeToken();
window.addEventListener('bloomery-unauthorized', ({ detail }) => askForToken(hasToken() && detail.message));
window.addEventListener('hashchange', () => {
  // A link with a token, opened in a tab that has the page already.
  if (location.hash.startsWith('#token=')) {
    takeToken();
    begin();
  } else if (location.hash !== '#main') {
    navigate();
  }
});
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
begin();
