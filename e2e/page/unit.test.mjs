// Tests the parts of the page that need no browser.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const PAGE = '../../gateway/page';
const stored = new Map();
globalThis.sessionStorage = { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => stored.set(key, value), removeItem: (key) => stored.delete(key) };
const { EventParser, delay, follow } = await import(`${PAGE}/events.mjs`);
const { Conversation } = await import(`${PAGE}/fold.mjs`);
const { clean, indented, shortened, visible, words } = await import(`${PAGE}/format.mjs`);

const STREAM = ': heartbeat\n\nid: 1\nevent: tool.started\ndata: {"a":\ndata: 1}\n\nid:2\r\ndata:two\r\n\r\ndata: three\r\rid: 9\n\ndata: not complete';
const EVENTS = [
  { name: 'tool.started', data: '{"a":\n1}', id: '1' },
  { name: 'message', data: 'two', id: '2' },
  { name: 'message', data: 'three', id: undefined },
];

test('a stream has the same events however it is cut', () => {
  for (let at = 0; at <= STREAM.length; at += 1) {
    const parser = new EventParser();
    assert.deepEqual([...parser.push(STREAM.slice(0, at)), ...parser.push(STREAM.slice(at))], EVENTS, `cut at ${at}`);
  }
  const parser = new EventParser();
  assert.deepEqual(Array.from(STREAM).flatMap((c) => parser.push(c)), EVENTS);
});

test('the delay grows to a maximum', () => {
  assert.deepEqual([0, 1, 4, 5, 50].map((failures) => delay(failures, 1)), [1000, 2000, 16000, 30000, 30000]);
  assert.ok(delay(50, 0) >= 15000);
});

/** Returns a response with events. */
function streamed(...events) {
  const text = events.map(({ seq, type }) => `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify({ seq, type, data: {} })}\n\n`).join('');
  return new Response(text, { headers: { 'Content-Type': 'text/event-stream' } });
}

test('a lost connection goes on after the last event', async (t) => {
  const start = globalThis.setTimeout;
  t.mock.method(globalThis, 'setTimeout', (run, ms) => start(run, ms > 30_000 ? ms : 0));
  const responses = [
    streamed({ seq: 1, type: 'tool.started' }, { seq: 2, type: 'tool.completed' }),
    new Response('event: problem\ndata: {"status":503,"detail":"busy"}\n\n'),
    Promise.reject(new TypeError('network error')),
    streamed({ seq: 3, type: 'conversation.finished' }),
  ];
  responses[2].catch(() => {});
  const asked = [];
  globalThis.fetch = (path, { headers }) => {
    asked.push([path, headers['Last-Event-ID']]);
    return responses[asked.length - 1];
  };
  const [seen, states] = [[], []];
  const onEvents = (events) => seen.push(...events.map(({ seq }) => seq));
  await follow('k-1', { onEvents, onState: (state) => states.push(state), signal: new AbortController().signal });
  assert.deepEqual(seen, [1, 2, 3]);
  assert.deepEqual(asked, [undefined, '2', '2', '2'].map((last) => ['api/jobs/k-1/events', last]));
  assert.equal(states.at(-1), 'ended');
});

test('a refusal is not repeated', async () => {
  globalThis.fetch = async () => Response.json({ status: 403, detail: 'you lack the verb create on pods' }, { status: 403 });
  const followed = follow('k-1', { onEvents: () => {}, onState: () => {}, signal: new AbortController().signal });
  await assert.rejects(followed, /you lack the verb create on pods/u);
});

test('arguments are indented without a change', () => {
  const json = '{"a":12345678901234567890.10,"a":[{},[],{"b":"{\\"x\\": [1]}"}],"c":true}';
  assert.equal(indented(json), `{
  "a": 12345678901234567890.10,
  "a": [
    {},
    [],
    {
      "b": "{\\"x\\": [1]}"
    }
  ],
  "c": true
}`);
  for (const other of ['{"a": 1}', '"unfinished', '']) assert.equal(indented(other), other);
});

test('no character is hidden, and none alters the text around it', () => {
  assert.equal(visible('a\u202eb\u200bc\u{e0041}'), 'a\\u{202e}b\\u{200b}c\\u{e0041}');
  assert.equal(clean('a\u202e\u001b[2J\nb\u2066'), 'a[2J\nb');
  assert.equal(shortened('a'.repeat(9), 5), 'aaaa…');
  assert.equal(words('AwaitingApproval'), 'Awaiting approval');
});

/** Returns the events of a file with a log as clients see them. */
function logged(file) {
  const lines = readFileSync(new URL(file, import.meta.url), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  return lines.map(({ type, data }, at) => ({ seq: at + 1, time: '2026-01-01T00:00:00Z', type: /^(conversation|tool|user)\./u.test(type) ? type : `conversation.${type}`, data }));
}

test('every event can be folded', () => {
  const events = logged('../../worker/engine/src/line/older/every-event.jsonl');
  assert.ok(events.length > 40);
  const conversation = new Conversation();
  for (const event of events) conversation.apply(event);
  assert.equal(conversation.last, events.length);
  assert.ok(conversation.end);
  assert.deepEqual(conversation.apply(events[0]), [], 'an event that is repeated changes nothing');
});

test('the state is read again until it has the request of the latest event', () => {
  const conversation = new Conversation();
  ['tool.held', 'conversation.parked'].forEach((type, at) => conversation.apply({ seq: at + 1, time: '', type, data: { held: { id: '1-0' } } }));
  const isAhead = (phase, events, open = {}) => conversation.isAhead({ phase, log: { events } }, open);
  assert.ok(isAhead('Running', 1), 'the status lacks an event');
  assert.ok(isAhead('Running', 2), 'the status lacks the end of the worker');
  assert.ok(isAhead('AwaitingApproval', 2), 'the Approval does not exist');
  assert.ok(!isAhead('AwaitingApproval', 2, { approvals: [{}] }));
  assert.ok(!isAhead('AwaitingReply', 2, { questions: [{}] }));
  assert.ok(isAhead('AwaitingReply', 1, { questions: [{}] }), 'the question may be an earlier one');
  assert.ok(!isAhead('Queued', 2));
  conversation.apply({ seq: 3, time: '', type: 'tool.approved', data: { call: '1-0' } });
  assert.ok(!isAhead('Running', 3));
});

test('the prefixes of names mean nothing', () => {
  const conversation = new Conversation();
  ['project.catalogue.fixed', 'conversation.catalogue.fixed', 'conversation.opened'].forEach((type, at) => conversation.apply({ seq: at + 1, time: '', type, data: {} }));
  assert.deepEqual(conversation.groups.flatMap(({ items }) => items.map(({ kind }) => kind)), ['catalogue.fixed', 'catalogue.fixed', 'conversation.opened']);
});

test('a call has its rulings, decisions and result', () => {
  const conversation = new Conversation();
  const events = [
    ['conversation.model.requested', { stage: 'plan' }],
    ['tool.requested', { call: '1-0', tool: 'refund', arguments: { canonical: { text: '{}' } } }],
    ['tool.ruled', { call: '1-0', verdict: 'Hold', reasons: [{ layer: 'Approval', detail: 'amount > 500' }] }],
    ['tool.held', { held: { id: '1-0' } }],
    ['tool.approved', { call: '1-0', approver: 'finance', by: 'ada' }],
    ['tool.ruled', { call: '1-0', verdict: 'Allow' }],
    ['tool.started', { call: '1-0' }],
    ['conversation.child.started', { call: '1-0', job: 'child', skill: 'billing' }],
    ['conversation.child.completed', { call: '1-0', code: 'Succeeded', message: 'done' }],
  ];
  events.forEach(([type, data], at) => conversation.apply({ seq: at + 1, time: '', type, data }));
  const [, call] = conversation.groups[0].items;
  assert.equal(conversation.groups[0].heading, 'Work');
  assert.equal(call.state, 'completed');
  assert.equal(call.hold.reasons[0].detail, 'amount > 500');
  assert.equal(call.decisions[0].by, 'ada');
  assert.equal(conversation.children[0].end.code, 'Succeeded');
});
