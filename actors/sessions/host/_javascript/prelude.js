// Runs in the fresh context of each cell, before its source: makes the helpers and the one bridge to the harness.
//
// Everything that may be replaced by a cell is taken before the cell starts. `post` and `peek` belong to the
// harness's realm: they are called with primitives only and are never handed on. An error that a cell can catch is
// made here, in the cell's own realm, or is a string.
(function (post, peek, definitions) {
  'use strict';
  const { apply, construct } = Reflect;
  const { stringify, parse } = JSON;
  const { defineProperty, freeze, create } = Object;
  const { isFinite } = Number;
  const { trunc } = Math;
  const { isArray } = Array;
  const TextOf = String, NumberOf = Number, Future = Promise, Range = RangeError, Wrong = TypeError;
  const then = Promise.prototype.then;
  const { indexOf, slice, trim, toLowerCase, startsWith, split, includes, replace, toWellFormed } = String.prototype;
  const { charCodeAt } = String.prototype;
  const { get, set, delete: remove, has } = Map.prototype;
  const sizeOf = Object.getOwnPropertyDescriptor(Map.prototype, 'size').get;
  const bind = Function.prototype.bind;
  const iterator = Symbol.iterator;
  const code = bind.call(Function.prototype.call, charCodeAt);

  const gone = freeze(create(null)); // What a helper throws once the cell is over; nobody sees it.
  let over = false, registries = false, calls = 0, timers = 0;
  const written = new Map(), waiting = new Map(), callbacks = new Map();
  const resolved = Future.resolve();

  function say(kind, a, b, c) {
    if (over) throw gone;
    try { return post(kind, a, b, c); } catch { throw new Range('Maximum call stack size exceeded'); }
  }

  function finish(error) {
    if (over) return;
    try { post('done', error, registries); } catch { throw new Range('Maximum call stack size exceeded'); }
    over = true;
  }

  const IMPORT_REFUSED = 'ERR_VM_DYNAMIC_IMPORT_CALLBACK_MISSING';

  function cleaned(stack) { // Frames that are not the cell's own tell nothing but where this program lies.
    const lines = apply(split, stack, ['\n']);
    let text = lines[0];
    for (let i = 1; i < lines.length; i++) {
      const line = lines[i];
      const frame = apply(startsWith, line, ['    at ']);
      const ours = frame && (apply(includes, line, ['greenroom:']) || apply(includes, line, ['file://'])
        || apply(includes, line, ['(ext:']) || apply(includes, line, [' ext:']) || apply(includes, line, ['node:']));
      if (!ours) text += '\n' + line;
    }
    return text;
  }

  function describe(error) { // The text of whatever was thrown; it runs code of the cell.
    try {
      if ((typeof error === 'object' && error !== null) || typeof error === 'function') {
        if (error.code === IMPORT_REFUSED) return 'unsupported import in exec';
        const stack = error.stack;
        if (typeof stack === 'string') return cleaned(stack);
      }
    } catch { /* A stack that cannot be read: say what else it is. */ }
    try { return `${error}`; } catch { return ''; }
  }

  function refused(error) { // What a helper throws when a conversion failed.
    if (over) return gone;
    const text = describe(error);
    // JSON.stringify was called from here, not by the cell.
    return over ? gone : apply(replace, text, ['\n    at stringify (<anonymous>)', '']);
  }

  function textOf(value) {
    switch (typeof value) {
      case 'string': return value;
      case 'undefined': case 'boolean': case 'number': case 'bigint': return TextOf(value);
    }
    if (value === null) return 'null';
    let json;
    try { json = stringify(value); } catch (error) { throw refused(error); }
    if (over) throw gone;
    return json === undefined ? 'undefined' : json;
  }

  const CANNOT = 'failed to serialize JavaScript value: ';

  function jsonOf(value) {
    let json;
    try { json = stringify(value); } catch (error) { throw refused(error); }
    if (over) throw gone;
    if (json === undefined) throw CANNOT + 'expected value at line 1 column 1';
    if (json.length > 255) checkDepth(json);
    for (let at = apply(indexOf, json, ['\\ud']); at >= 0; at = apply(indexOf, json, ['\\ud', at + 2])) {
      let slashes = 0;
      while (code(json, at - 1 - slashes) === 92) slashes++;
      if (slashes % 2 === 0) throw CANNOT + 'unexpected end of hex escape at line 1 column ' + (at + 7);
    }
    return json;
  }

  function checkDepth(json) {
    for (let i = 0, depth = 0; i < json.length; i++) {
      switch (code(json, i)) {
        case 91: case 123:
          if (++depth === 128) throw CANNOT + 'recursion limit exceeded at line 1 column ' + (i + 1);
          break;
        case 93: case 125: depth--; break;
        case 34:
          for (;;) { // Jump from quote to quote; one behind an odd number of backslashes is text.
            i = apply(indexOf, json, ['"', i + 1]);
            let slashes = 0;
            while (code(json, i - 1 - slashes) === 92) slashes++;
            if (slashes % 2 === 0) break;
          }
      }
    }
  }

  function keyOf(value, refusal) {
    let key;
    try { key = apply(toWellFormed, `${value}`, []); } catch { throw over ? gone : refusal; }
    if (over) throw gone;
    return key;
  }

  const isObject = (value) => typeof value === 'object' && value !== null;
  const lower = (text) => apply(toLowerCase, text, []);

  // ---- images and audio

  const SHAPE = 'image expects a non-empty image URL string, an object with image_url and optional detail, '
    + 'or a raw MCP image block';
  const AUDIO_SHAPE = 'audio expects a non-empty audio URL string, an object with audio_url, or a raw MCP audio block';
  const DETAIL_TEXT = 'image detail must be a string when provided';

  function knownDetail(detail) {
    return detail === 'auto' || detail === 'low' || detail === 'high' || detail === 'original' ? detail : undefined;
  }

  function dataUrl(block) {
    if (lower(apply(slice, block.data, [0, 5])) === 'data:') return block.data;
    let mime = typeof block.mimeType === 'string' ? block.mimeType : block.mime_type;
    if (typeof mime !== 'string' || mime === '') mime = 'application/octet-stream';
    return `data:${mime};base64,${block.data}`;
  }

  function metaDetail(block) {
    const hint = isObject(block._meta) ? block._meta['codex/imageDetail'] : undefined;
    return typeof hint === 'string' ? knownDetail(hint) : undefined;
  }

  function fromJson(value, kind, shape) { // A raw block is read through JSON: getters run, once more if need be.
    if (typeof value !== 'function' && !isObject(value)) throw shape;
    const block = parse(jsonOf(value));
    if (!isObject(block) || isArray(block) || typeof block.type !== 'string') throw shape;
    if (block.type !== kind) throw `${kind} only accepts MCP ${kind} blocks, got "${block.type}"`;
    if (typeof block.data !== 'string' || block.data === '') throw `${kind} expected MCP ${kind} data`;
    return block;
  }

  function checkScheme(url, kind) {
    const colon = apply(indexOf, url, [':']);
    const scheme = colon < 0 ? '' : lower(apply(slice, url, [0, colon]));
    if (kind === 'image' && (scheme === 'http' || scheme === 'https')) {
      throw 'Tool call failed: remote image URLs are not supported in tool outputs. Pass a base64 data URI instead';
    }
    if (scheme !== 'data') throw `Tool call failed: invalid ${kind} output. Pass a base64 data URI instead`;
  }

  function emitImage(value, second) {
    let url, detail, embedded = false;
    if (second !== undefined && second !== null && typeof second !== 'string') throw DETAIL_TEXT;
    if (typeof value === 'string') url = value;
    else if (isObject(value)) {
      try { url = value.image_url; } catch { if (over) throw gone; }
      if (url === undefined && over) throw gone;
      if (typeof url === 'string') {
        embedded = true;
        try { detail = value.detail; } catch (error) { throw refused(error); }
      } else url = undefined;
    }
    if (over) throw gone;
    if (url === undefined) {
      const block = fromJson(value, 'image', SHAPE);
      url = dataUrl(block);
      detail = metaDetail(block);
    }
    if (embedded && detail !== undefined && detail !== null && typeof detail !== 'string') throw DETAIL_TEXT;
    if (url === '') throw SHAPE;
    checkScheme(url, 'image');
    if (second !== undefined && second !== null) detail = second;
    if (detail === undefined || detail === null) detail = 'high';
    else if ((detail = knownDetail(lower(detail))) === undefined) {
      throw 'image detail must be one of: auto, low, high, original';
    }
    say('image', apply(toWellFormed, url, []), detail);
  }

  function emitAudio(value) {
    let url;
    if (typeof value === 'string') url = value;
    else if (isObject(value)) {
      try { url = value.audio_url; } catch { /* It may still be a block. */ }
      if (typeof url !== 'string') url = undefined;
    }
    if (over) throw gone;
    if (url === undefined) url = dataUrl(fromJson(value, 'audio', AUDIO_SHAPE));
    if (url === '') throw AUDIO_SHAPE;
    checkScheme(url, 'audio');
    say('audio', apply(toWellFormed, url, []));
  }

  const BLOCK = 'content expects one MCP ContentBlock';

  function emitBlock(value) {
    if (!isObject(value)) throw BLOCK;
    const json = jsonOf(value);
    const block = parse(json);
    if (!isObject(block) || isArray(block)) throw BLOCK;
    const type = block.type;
    if (type === 'text' && typeof block.text === 'string') say('text', block.text);
    else if ((type === 'image' || type === 'audio') && typeof block.data === 'string') {
      if (type === 'image') say('image', dataUrl(block), metaDetail(block) ?? 'high');
      else say('audio', dataUrl(block));
    } else if (type === 'resource' && isObject(block.resource) && typeof block.resource.uri === 'string') {
      say('text', json);
    } else if (type === 'resource_link' && typeof block.uri === 'string' && typeof block.name === 'string') {
      say('text', json);
    } else throw BLOCK;
  }

  function emitContent(value) {
    let walk;
    try { walk = isObject(value) ? value[iterator] : undefined; } catch (error) { throw refused(error); }
    if (over) throw gone;
    if (typeof walk !== 'function') { emitBlock(value); return; }
    let steps, next;
    try { steps = apply(walk, value, []); next = steps.next; } catch (error) { throw refused(error); }
    for (;;) {
      let element;
      try {
        const step = apply(next, steps, []);
        if (step.done) return;
        element = step.value;
      } catch (error) { throw refused(error); }
      if (over) throw gone;
      emitBlock(element);
    }
  }

  function emitGenerated(value) {
    if (!isObject(value) && typeof value !== 'function') {
      throw 'generatedImage expects an image generation result object';
    }
    let hint;
    try { hint = value.output_hint; } catch (error) { throw refused(error); }
    if (over) throw gone;
    if (hint !== undefined && typeof hint !== 'string') {
      throw 'generatedImage output_hint must be a string when provided';
    }
    emitImage(value, undefined);
    if (hint !== undefined) say('text', apply(toWellFormed, hint, []));
  }

  // ---- results in the order in which they settle

  function entriesOf(iterable) {
    const entries = [];
    const keyed = iterable instanceof Map;
    let index = 0;
    for (const entry of iterable) {
      entries[index] = keyed ? [entry[0], entry[1]] : [index, entry];
      index++;
    }
    return entries;
  }

  async function* settled(iterable) {
    const entries = entriesOf(iterable), ready = [];
    let taken = 0, arrived = 0, wake;
    const arrive = (result) => {
      ready[arrived++] = result;
      if (wake) { wake(); wake = undefined; }
    };
    for (let i = 0; i < entries.length; i++) {
      const [index, value] = entries[i];
      apply(then, Future.resolve(value), [
        (value) => arrive({ index, status: 'fulfilled', value }),
        (reason) => arrive({ index, status: 'rejected', reason }),
      ]);
    }
    while (taken < entries.length) {
      if (taken === arrived) await new Future((resolve) => { wake = resolve; });
      else yield ready[taken++];
    }
  }

  async function streamed(iterable, emit) {
    if (typeof emit !== 'function') throw new Wrong('stream_settled requires a callback');
    for await (const result of settled(iterable)) await emit(result);
  }

  // ---- calls that the host need not hear of: more wait for their answers than it ever lets wait

  const WAITING_MAX = 8192;
  let turnedAway;

  function tooMany() { // Refused as the host does it, and like there not before others have had their answers.
    if (turnedAway === undefined) {
      const rejects = turnedAway = [], id = ++timers;
      apply(set, callbacks, [id, () => {
        turnedAway = undefined;
        for (let i = 0; i < rejects.length; i++) rejects[i]('code-mode session has too many pending delegate calls');
      }]);
      say('timer', id, 0);
    }
    return new Future((resolve, reject) => { turnedAway[turnedAway.length] = reject; });
  }

  // ---- the helpers, in the order in which a cell finds them

  const tools = {}, list = [];
  const described = parse(definitions);
  for (let i = 0; i < described.length; i++) {
    const [name, description] = described[i];
    const tool = bind.call(function (input) {
      if (over) throw gone;
      const json = input === undefined ? undefined : jsonOf(input);
      const id = ++calls;
      if (apply(sizeOf, waiting, []) >= WAITING_MAX) return tooMany();
      const answer = new Future((resolve, reject) => { apply(set, waiting, [id, [resolve, reject]]); });
      say('call', id, i, json);
      return answer;
    }, undefined);
    defineProperty(tool, 'name', { value: '', configurable: true });
    defineProperty(tool, 'length', { value: 0, configurable: true });
    defineProperty(tools, name, { value: tool, writable: true, enumerable: true, configurable: true });
    list[i] = { name, description };
  }

  const helpers = {
    clearTimeout(id) {
      if (id === undefined || id === null) return;
      if (typeof id === 'symbol' || typeof id === 'bigint') throw 'clearTimeout expects a numeric timeout id';
      let number;
      try { number = NumberOf(id); } catch { throw over ? gone : 'clearTimeout expects a numeric timeout id'; }
      if (over) throw gone;
      if (!isFinite(number) || number <= 0) return;
      number = trunc(number);
      if (apply(remove, callbacks, [number])) say('clear', number);
    },
    setTimeout(callback, delay) {
      if (typeof callback !== 'function') throw 'setTimeout expects a function callback';
      let ms = delay === undefined ? 0 : +delay;
      if (over) throw gone;
      ms = isFinite(ms) && ms > 0 ? trunc(ms) : 0;
      const id = ++timers;
      apply(set, callbacks, [id, callback]);
      say('timer', id, ms);
      return id;
    },
    text(value) { say('text', textOf(value)); }, // Half code points are replaced where it is written.
    content(value) { emitContent(value); },
    image(value, detail) { emitImage(value, detail); },
    audio(value) { emitAudio(value); },
    generatedImage(value) { emitGenerated(value); },
    store(name, value) {
      const key = keyOf(name, 'store key must be a string');
      if (value === undefined) {
        throw `Unable to store "${key}". Only plain serializable objects can be stored.`;
      }
      const json = jsonOf(value);
      const refused = say('store', key, json);
      if (refused !== undefined) throw `Unable to store "${key}". ${refused}`;
      apply(set, written, [key, json]);
    },
    load(name) {
      const key = keyOf(name, 'load key must be a string');
      let json;
      if (apply(has, written, [key])) json = apply(get, written, [key]);
      else try { json = peek(key); } catch { throw new Range('Maximum call stack size exceeded'); }
      return json === undefined ? undefined : parse(json);
    },
    notify(value) {
      const text = apply(toWellFormed, textOf(value), []);
      if (apply(trim, text, []) === '') throw 'notify expects non-empty text';
      say('notify', text);
    },
    yield_control() { say('yield'); },
    exit() { finish(undefined); throw gone; },
  };

  const absent = ['console', 'Atomics', 'SharedArrayBuffer', 'WebAssembly', 'Temporal', 'queueMicrotask',
    'ShadowRealm'];
  for (let i = 0; i < absent.length; i++) delete globalThis[absent[i]];

  const offer = (name, value) =>
    defineProperty(globalThis, name, { value, writable: true, enumerable: true, configurable: true });
  offer('tools', tools);
  offer('ALL_TOOLS', list);
  for (const name of Object.keys(helpers)) {
    const body = helpers[name];
    const helper = bind.call(function (first, second) {
      if (over) throw gone;
      return body(first, second);
    }, undefined);
    defineProperty(helper, 'name', { value: '', configurable: true });
    defineProperty(helper, 'length', { value: 0, configurable: true });
    offer(name, helper);
  }
  offer('as_settled', bind.call(settled, undefined));
  offer('stream_settled', bind.call(streamed, undefined));
  defineProperty(as_settled, 'name', { value: 'as_settled', configurable: true });
  defineProperty(stream_settled, 'name', { value: 'stream_settled', configurable: true });

  // A registry may run a callback of this cell while the next one runs: the process is then not used again.
  const Registry = FinalizationRegistry;
  const Watched = function FinalizationRegistry(cleanup) {
    if (new.target === undefined) throw new Wrong("Constructor FinalizationRegistry requires 'new'");
    registries = true;
    return construct(Registry, [cleanup], new.target);
  };
  defineProperty(Watched, 'prototype', { value: Registry.prototype, writable: false });
  defineProperty(Registry.prototype, 'constructor',
    { value: Watched, writable: true, enumerable: false, configurable: true });
  defineProperty(globalThis, 'FinalizationRegistry',
    { value: Watched, writable: true, enumerable: false, configurable: true });

  return {
    fulfilled() { finish(undefined); },
    rejected(error) {
      if (over) return;
      const text = describe(error);
      finish(apply(toWellFormed, text, []));
    },
    settle(id, good, text) {
      const pair = apply(get, waiting, [id]);
      if (pair === undefined || over) return;
      apply(remove, waiting, [id]);
      if (good) pair[0](parse(text));
      else pair[1](text);
    },
    fire(id) {
      const callback = apply(get, callbacks, [id]);
      if (callback === undefined || over) return;
      apply(remove, callbacks, [id]);
      // From a microtask, so that a stack shows frames of the cell only.
      apply(then, resolved, [() => {
        if (over) return;
        try { apply(callback, undefined, []); } catch (error) {
          if (error !== gone) finish(apply(toWellFormed, describe(error), []));
        }
      }]);
    },
  };
})
