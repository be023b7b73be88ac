// Follows the events of a Job. `EventSource` cannot send the token, so this reads the stream itself.

import { open, Problem, refusal } from './api.mjs';

/** The time without a byte after which a connection is dead, in milliseconds. The server sends a comment each 15 s. */
const SILENCE = 45_000;

/** The longest delay before the next connection, in milliseconds. */
const MAX_DELAY = 30_000;

/** Parses server-sent events. `push` takes a part of the stream, and returns the events that are complete. */
export class EventParser {
  #rest = '';
  #event = { name: '', data: [], id: undefined };

  push(text) {
    const events = [];
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/u);
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line, events);
    return events;
  }

  #line(line, events) {
    if (line === '') {
      const { name, data, id } = this.#event;
      if (data.length > 0) events.push({ name: name || 'message', data: data.join('\n'), id });
      this.#event = { name: '', data: [], id: undefined };
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /u, '');
    if (field === 'event') this.#event.name = value;
    else if (field === 'data') this.#event.data.push(value);
    else if (field === 'id') this.#event.id = value;
  }
}

/** Returns the delay before the connection after `failures` failed ones, in milliseconds. */
export function delay(failures, random = Math.random()) {
  return Math.min(MAX_DELAY, 1000 * 2 ** Math.min(failures, 5)) * (0.5 + random / 2);
}

/** Waits for a time, or until the signal is aborted. */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}

/**
 * Follows a Job until its last event. Calls `onEvents` with each group of events, in order and without gaps, and `onState` with `live`,
 * `waiting` or `ended`. Throws if the caller may not follow the Job.
 */
export async function follow(job, { onEvents, onState, signal }) {
  let last = '';
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      const before = last;
      const connection = { onState, onEvents, signal, after: last, moved: (id) => { last = id; } };
      if (await connect(job, connection)) return;
      if (last !== before) failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.isFinal) throw error;
    }
    onState('waiting');
    await sleep(delay(failures), signal);
  }
}

/** Reads one connection. Returns whether the Job has no further events. */
async function connect(job, { onState, onEvents, signal, after, moved }) {
  const attempt = new AbortController();
  const stop = () => attempt.abort();
  signal.addEventListener('abort', stop, { once: true });
  let timer = setTimeout(stop, SILENCE);
  try {
    const headers = { Accept: 'text/event-stream', ...(after && { 'Last-Event-ID': after }) };
    const response = await open('GET', ['jobs', job, 'events'], { headers, signal: attempt.signal });
    if (response.status === 204) {
      onState('ended');
      return true;
    }
    onState('live');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE);
      const parsed = parser.push(value);
      const events = parsed.filter(({ name }) => name !== 'problem').map(({ data }) => JSON.parse(data));
      const newest = parsed.findLast(({ id }) => id !== undefined);
      if (newest) moved(newest.id);
      if (events.length > 0) onEvents(events);
      const problem = parsed.find(({ name }) => name === 'problem');
      if (problem) throw refusal(JSON.parse(problem.data));
      if (events.some(({ type }) => type === 'conversation.finished')) {
        onState('ended');
        attempt.abort();
        return true;
      }
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
