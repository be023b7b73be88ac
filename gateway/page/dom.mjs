// Builds the document. All texts become text nodes: no markup of a model, a tool or a person is ever parsed.

import { clean, hasEnded, awaitsPeople, size, words } from './format.mjs';

/** The attributes that may be set. Others could run code or load something. */
const ATTRIBUTES = new Set([
  'aria-current', 'aria-describedby', 'aria-expanded', 'aria-label', 'aria-labelledby', 'aria-live', 'autocomplete', 'checked', 'class',
  'colspan', 'data-key', 'data-label', 'data-state', 'datetime', 'disabled', 'for', 'hidden', 'href', 'id', 'inputmode', 'list', 'max',
  'maxlength', 'min', 'name', 'open', 'pattern', 'placeholder', 'required', 'role', 'rows', 'scope', 'selected', 'spellcheck', 'tabindex',
  'title', 'type', 'value',
]);

/** Creates an element. `attributes.on` has its event handlers. Children are nodes, texts, or nothing. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'on') {
      for (const [type, handler] of Object.entries(value)) element.addEventListener(type, handler);
    } else if (!ATTRIBUTES.has(key) || (key === 'href' && !value.startsWith('#'))) {
      throw new Error(`the attribute ${key} is not allowed`);
    } else if (value === true) {
      element.setAttribute(key, '');
    } else if (value !== false && value !== undefined && value !== null) {
      element.setAttribute(key, clean(value));
    }
  }
  return fill(element, ...children);
}

/** Appends children to an element. */
export function fill(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child instanceof Node) element.append(child);
    else if (child !== undefined && child !== null && child !== false) element.append(clean(child));
  }
  return element;
}

/** Replaces the children of an element. */
export function refill(element, ...children) {
  element.replaceChildren();
  return fill(element, ...children);
}

let ids = 0;

/** Returns a new id. */
export function newId(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}

/** Returns a link to a view of this page. */
export function link(path, ...children) {
  return el('a', { href: `#/${path.map(encodeURIComponent).join('/')}` }, ...children);
}

/** Returns a button. */
export function button(text, handler, attributes = {}) {
  return el('button', { type: 'button', ...attributes, on: { click: handler } }, text);
}

/** Returns a word with a colour. The colour adds nothing to the word. */
export function badge(text, tone = 'plain') {
  return el('span', { class: `badge ${tone}` }, text);
}

/** Returns the phase of a Job. */
export function phaseBadge(phase) {
  const tone = phase === 'Succeeded' ? 'good' : hasEnded(phase) ? 'bad' : awaitsPeople(phase) ? 'wait' : 'busy';
  return badge(words(phase), tone);
}

/** Returns a time of day, with the date in its title. */
export function time(iso, withDate = false) {
  const date = new Date(iso);
  if (Number.isNaN(date.valueOf())) return null;
  const text = withDate ? date.toLocaleString() : date.toLocaleTimeString();
  return el('time', { datetime: date.toISOString(), title: date.toLocaleString() }, text);
}

/** The length of a text that is shown at once. */
const [PREVIEW_CHARS, PREVIEW_LINES] = [1200, 16];

/** Returns a text of any length with its line breaks. A long one has a button that shows all of it. */
export function longText(text, className = '') {
  const shown = el('pre', { class: `text ${className}` });
  const preview = Array.from(text.split('\n', PREVIEW_LINES).join('\n')).slice(0, PREVIEW_CHARS).join('').trimEnd();
  if (preview === text.trimEnd()) return fill(shown, text);
  fill(shown, `${preview}…`);
  const all = button(`Show all (${size(new TextEncoder().encode(text).length)})`, () => {
    refill(shown, text);
    shown.tabIndex = -1;
    shown.focus();
    all.remove();
  });
  return el('div', {}, shown, all);
}

/** Returns a list of names and values. */
export function facts(pairs) {
  return el('dl', { class: 'facts' }, pairs.map(([name, ...values]) => [el('dt', {}, name), el('dd', {}, ...values)]));
}

/** Returns a notice about an error. */
export function failure(error) {
  return el('div', { class: 'notice bad', role: 'alert' }, error.message ?? String(error));
}

/** Says something to screen readers. */
export function announce(text) {
  const status = document.getElementById('status');
  if (status) status.textContent = clean(text);
}

/** Returns a field of a form: a label, an input, and a hint. */
export function field(label, input, hint) {
  const id = newId('field');
  input.id = id;
  if (hint) input.setAttribute('aria-describedby', `${id}-hint`);
  return el('div', { class: 'field' }, el('label', { for: id }, label), hint && el('p', { class: 'hint', id: `${id}-hint` }, hint), input);
}
