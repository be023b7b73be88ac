// Texts for people. Nothing here touches the document.

// The characters that change how the text around them is shown, except line breaks and tabs.
const ALTERS_DISPLAY = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

// These, and the characters without a shape. The table is that of `is_invisible` in crds/src/text.rs.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** Removes the characters that change how the text around them is shown. */
export function clean(text) {
  return String(text).replace(ALTERS_DISPLAY, '');
}

/** Escapes the characters that a reader cannot see. For texts that a person decides about. */
export function visible(text) {
  return String(text).replace(INVISIBLE, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/**
 * Indents JSON text. It moves the tokens and changes none: a parser would round large numbers and keep only one of two equal keys, and a
 * person would approve other arguments than those that are sent.
 */
export function indented(json) {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/gu) ?? [];
  // It has blanks between its tokens, or is no JSON.
  if (tokens.join('') !== json) return json;
  let depth = 0;
  let text = '';
  tokens.forEach((token, at) => {
    const previous = tokens[at - 1];
    const isEmpty = (token === '}' && previous === '{') || (token === ']' && previous === '[');
    if (token === '}' || token === ']') depth = Math.max(0, depth - 1);
    const breaks = previous !== undefined && !isEmpty && ('{[,'.includes(previous) || token === '}' || token === ']');
    if (breaks) text += `\n${'  '.repeat(depth)}`;
    text += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth += 1;
  });
  return text;
}

const NUMBER = new Intl.NumberFormat('en');

/** Returns a number with separators. */
export function number(value) {
  return NUMBER.format(value ?? 0);
}

/** Returns a number of seconds, such as `1 h 5 min`. */
export function duration(seconds) {
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  const parts = h > 0 ? [`${h} h`, m && `${m} min`] : m > 0 ? [`${m} min`, s && `${s} s`] : [`${s} s`];
  return parts.filter(Boolean).join(' ');
}

/** Returns a size, such as `12 KiB`. */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** Returns the words of a name such as `AwaitingApproval`. */
export function words(name) {
  const text = String(name).replace(/_/gu, ' ').replace(/([a-z])([A-Z])/gu, '$1 $2').toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns the first line of a text, cut to a length. */
export function shortened(text, length = 120) {
  const line = clean(text).trim().split('\n', 1)[0];
  const letters = Array.from(line);
  return letters.length > length ? `${letters.slice(0, length - 1).join('')}…` : line;
}

const RESOURCES = { filesystem: 'file system', api_endpoint: 'API', credential: 'secret', connection_string: 'secret address' };

/** Returns the type of a resource for people. */
export function resourceType(type) {
  return RESOURCES[type] ?? words(type).toLowerCase();
}

const ENDED = ['Succeeded', 'Failed', 'Refused', 'Escalated', 'Cancelled'];

/** Returns whether a Job of a phase has ended. */
export function hasEnded(phase) {
  return ENDED.includes(phase);
}

/** Returns whether a Job of a phase waits for a person. */
export function awaitsPeople(phase) {
  return phase === 'AwaitingApproval' || phase === 'AwaitingReply';
}
