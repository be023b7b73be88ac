// The requests to the API of the gateway. Each has the token of the person, and the namespace where the server serves several.

const TOKEN = 'bloomery.token';
const NAMESPACE = 'bloomery.namespace';

/** The header that names the namespace of a request. */
const NAMESPACE_HEADER = 'Bloomery-Namespace';

/** An error that the server describes (RFC 9457). */
export class Problem extends Error {
  constructor({ status, title, detail }) {
    super(detail || title || `The server responded with the status ${status}.`);
    this.status = status;
  }

  /** Whether the same request will fail again. */
  get isFinal() {
    return this.status >= 400 && this.status < 500 && this.status !== 429;
  }
}

/** Moves the token from the address of the page to the storage of this tab, so that it is in no history and no bookmark. */
export function takeToken() {
  const found = /^#token=([^&]+)/u.exec(location.hash);
  if (!found) return;
  setToken(found[1]);
  history.replaceState(null, '', location.pathname);
}

/** Stores the token for this tab. */
export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/** Forgets the token and the namespace. */
export function forget() {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.removeItem(NAMESPACE);
}

/** Returns whether this tab has a token. */
export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

/** Returns the namespace that the person has chosen. */
export function namespace() {
  return sessionStorage.getItem(NAMESPACE) ?? '';
}

/** Chooses a namespace. */
export function setNamespace(name) {
  if (name) sessionStorage.setItem(NAMESPACE, name);
  else sessionStorage.removeItem(NAMESPACE);
}

/** Sends a request, and returns the response if it is a success. Throws a `Problem` otherwise. */
export async function open(method, path, { body, headers = {}, signal } = {}) {
  const all = { Accept: 'application/json', ...headers };
  const token = sessionStorage.getItem(TOKEN);
  if (token) all.Authorization = `Bearer ${token}`;
  if (namespace()) all[NAMESPACE_HEADER] = namespace();
  if (body !== undefined) all['Content-Type'] = 'application/json';
  const request = {
    method, headers: all, signal, cache: 'no-store', redirect: 'error', body: body === undefined ? undefined : JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(`api/${path.map(encodeURIComponent).join('/')}`, request);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem({ status: 0, detail: 'The server does not answer. Check that it runs, and try again.' });
  }
  if (response.ok) return response;
  const detail = await response.json().catch(() => ({}));
  throw refusal({ title: response.statusText, ...detail, status: response.status });
}

/** Returns the error that the server describes. If it does not accept the token, the page asks for another one. */
export function refusal(description) {
  const problem = new Problem(description);
  if (problem.status === 401) window.dispatchEvent(new CustomEvent('bloomery-unauthorized', { detail: problem }));
  return problem;
}

/** Reads a value. */
export async function get(path, signal) {
  return (await open('GET', path, { signal })).json();
}

/** Reads a list. */
export async function list(path, signal) {
  return (await get(path, signal)).items;
}

/** Sends a value. */
export function post(path, body, headers) {
  return open('POST', path, { body, headers });
}

/** Returns a random key. `crypto.randomUUID` exists only where the page comes by HTTPS or from this machine. */
export function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
