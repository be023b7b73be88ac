// Folds the events of a Job into what the page shows. Nothing here touches the document.

/** The stage of a model request, as a heading. */
const STAGES = { intent: 'Intent', selection: 'Tool selection', plan: 'Work', finalization: 'Finalization', polish: 'Polish' };

/** The headings of events that do not belong to the current stage. */
const HEADINGS = {
  'job.attached': 'Opening', 'catalogue.fixed': 'Opening', 'resources.bound': 'Opening', 'context.gathered': 'Opening',
  'conversation.opened': 'Work', 'tools.selected': 'Tool selection', 'intent.detected': 'Intent', 'gate.ruled': 'Finalization',
  'reply.polished': 'Polish', 'feature.tested': 'Validation', 'tool.requested': 'Work', finished: 'End',
};

/** The phases of a Job that waits for people. */
const AWAITS_PEOPLE = ['AwaitingApproval', 'AwaitingReply'];

/** The phases of a Job whose worker works. */
const WORKS = ['Running', 'Finalizing'];

/** Returns the name of an event in the log. Clients see most names with a prefix. */
function logName(type) {
  const name = type.replace(/^(conversation|project)\./u, '');
  return name === 'opened' ? type : name;
}

/** What the events of a Job say. */
export class Conversation {
  /** The parts of the timeline: a heading, and its items. */
  groups = [];
  /** The limits, once the conversation is open. */
  limits = null;
  /** The children, in their order. */
  children = [];
  /** The last event of the Job. */
  end = null;
  /** The number of the last event. */
  last = 0;

  #calls = new Map();
  #questions = new Map();
  #request = null;
  #latest = '';

  /** Applies an event. Returns the items that it changed. */
  apply(event) {
    // A connection that begins again may repeat an event.
    if (event.seq <= this.last) return [];
    this.last = event.seq;
    const name = logName(event.type);
    this.#latest = name;
    const handler = HANDLERS[name];
    const changed = handler ? handler.call(this, event, event.data ?? {}) : this.add(event, name);
    return [changed].flat().filter(Boolean);
  }

  /**
   * Returns whether the state and the open requests of the Job may change without an event. On a cluster, they follow the events after a
   * moment: first the number of events, then the phase of a Job that has parked, and then the Approvals of its held call.
   */
  isAhead({ phase, log }, { approvals = [], questions = [] }) {
    if (log.events < this.last) return true;
    if (approvals.length + questions.length > 0) return false;
    return AWAITS_PEOPLE.includes(phase) || (this.#latest === 'parked' && WORKS.includes(phase));
  }

  /** Adds an item for an event. */
  add(event, kind, heading = HEADINGS[kind]) {
    const current = this.groups.at(-1);
    const item = { id: event.seq, kind, time: event.time, data: event.data ?? {} };
    if (current && (heading === undefined || heading === current.heading)) {
      current.items.push(item);
    } else {
      this.groups.push({ id: event.seq, heading: heading ?? 'Opening', items: [item] });
    }
    return item;
  }

  /** Adds the item of a call. */
  addCall(event, data) {
    const item = Object.assign(this.add(event, 'tool.requested'), { state: 'requested', decisions: [] });
    this.#calls.set(data.call, item);
    return item;
  }

  /** Changes the item of a call. */
  call(id, change) {
    const item = this.#calls.get(id);
    return item && Object.assign(item, change(item));
  }

  /** Adds the item of a model request. */
  request(event, data) {
    this.#request = Object.assign(this.add(event, 'model.requested', STAGES[data.stage] ?? 'Work'), { state: 'running' });
    return this.#request;
  }

  /** Ends the latest model request. */
  answer(event, change) {
    const item = this.#request ?? this.add(event, 'model.requested', 'Work');
    this.#request = null;
    return Object.assign(item, change);
  }

  /** Adds a question. */
  ask(event, data) {
    this.call(data.about?.call, () => ({ state: 'asks' }));
    const item = this.add(event, 'user.asked');
    this.#questions.set(data.question?.id, item);
    return [item, this.#calls.get(data.about?.call)];
  }

  /** Adds a reply to its question. */
  reply(event, data) {
    const item = this.#questions.get(data.question);
    if (!item) return this.add(event, 'user.replied');
    this.call(item.data.about?.call, () => ({ state: 'completed' }));
    return [Object.assign(item, { reply: data }), this.#calls.get(item.data.about?.call)];
  }

  /** Lowers the limits. */
  lower(event, { limits = {} }) {
    const lowered = { steps: limits.steps, toolCalls: limits.toolCalls, tokens: limits.tokens, durationSeconds: seconds(limits.duration) };
    for (const [name, value] of Object.entries(lowered)) {
      if (this.limits && value !== undefined) this.limits[name] = Math.min(this.limits[name], value);
    }
    return this.add(event, 'limits.lowered');
  }
}

/** Returns the seconds of a duration such as `1h30m`. */
function seconds(text) {
  if (text === undefined) return undefined;
  const units = { h: 3600, m: 60, s: 1 };
  return Array.from(text.matchAll(/(\d+)([hms])/gu)).reduce((sum, [, count, unit]) => sum + Number(count) * units[unit], 0);
}

const HANDLERS = {
  'conversation.opened'(event, data) {
    this.limits = { ...data.limits };
    return this.add(event, 'conversation.opened');
  },
  'limits.lowered'(event, data) { return this.lower(event, data); },
  'model.requested'(event, data) { return this.request(event, data); },
  'model.answered'(event, data) { return this.answer(event, { state: 'answered', answer: data }); },
  'model.failed'(event, data) { return this.answer(event, { state: 'failed', failure: data }); },
  'tool.requested'(event, data) { return this.addCall(event, data); },
  'tool.ruled'(event, data) {
    // A held call is ruled on again before its start. The reasons of the hold stay.
    const hold = data.verdict === 'Hold' && { hold: data };
    return this.call(data.call, () => ({ ruling: data, state: data.verdict === 'Deny' ? 'denied' : 'ruled', ...hold }));
  },
  'tool.held'(event, { held }) { return this.call(held.id, () => ({ held, state: 'held' })); },
  'tool.approved'(event, data) {
    return this.call(data.call, (item) => ({ decisions: [...item.decisions, { ...data, approved: true }], state: 'approved' }));
  },
  'tool.denied'(event, data) { return this.call(data.call, (item) => ({ decisions: [...item.decisions, data], state: 'denied' })); },
  'tool.skipped'(event, data) { return this.call(data.call, () => ({ state: 'skipped', because: data.because })); },
  'tool.started'(event, data) { return this.call(data.call, () => ({ state: 'running', started: event.time })); },
  'tool.progressed'(event, data) { return this.call(data.call, () => ({ progress: data.told })); },
  'tool.completed'(event, data) { return this.call(data.call, () => ({ state: 'completed', result: data.text })); },
  'tool.failed'(event, data) { return this.call(data.call, () => ({ state: 'failed', result: data.text })); },
  'tool.indeterminate'(event, data) { return this.call(data.call, () => ({ state: 'lost', result: data.text })); },
  'result.offloaded'(event, data) { return this.call(data.call, () => ({ offloaded: data })); },
  'limits.reserved'(event, data) { return this.call(data.call, () => ({ reservation: data })); },
  'limits.returned'() { return null; },
  'child.started'(event, data) {
    this.children.push({ ...data, end: null });
    return this.call(data.call, () => ({ child: data, state: 'running' }));
  },
  'child.completed'(event, data) {
    const child = this.children.find(({ call }) => call === data.call);
    if (child) child.end = data;
    return this.call(data.call, () => ({
      state: data.code === 'Succeeded' ? 'completed' : 'failed', result: data.text ?? data.message, fields: data.fields,
    }));
  },
  'user.asked'(event, data) { return this.ask(event, data); },
  'user.replied'(event, data) { return this.reply(event, data); },
  finished(event, data) {
    this.end = data;
    return this.add(event, 'finished');
  },
};
