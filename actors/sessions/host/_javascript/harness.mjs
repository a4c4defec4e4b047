// One engine process: runs cells one after the other, each in a context of its own. Speaks frames over stdin and
// stdout: four bytes of length, little end first, then a JSON array; or, for what is often or large, one letter, the
// number of the cell, up to two more numbers and UTF-8. Runs under Deno and under node.
//
// A context is not a wall by itself. What makes it one: nothing of this realm but two functions is handed into it,
// and those to the prelude only; whatever can be reached all the same (call sites) is frozen and has no way to make
// functions; and behind it stand the engine's own permissions and the process.
import vm from 'node:vm';
import fs from 'node:fs';
import { Buffer } from 'node:buffer';
import timers from 'node:timers';

const host = globalThis.Deno;
const node = globalThis.process;
const encoder = new TextEncoder(), decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const nextTurn = timers.setImmediate;
const { createContext, Script, SourceTextModule, constants } = vm;
const bare = constants.DONT_CONTEXTIFY;
const { stringify, parse } = JSON;
const byteLength = Buffer.byteLength;
const random = () => `s${Math.random().toString(36).slice(2)}`;
const leave = host ? () => host.exit(0) : () => node.exit(0);

// ---- frames

const writeSome = host ? (bytes) => host.stdout.writeSync(bytes) : (bytes) => fs.writeSync(1, bytes);
let room = new Uint8Array(64 * 1024), view = new DataView(room.buffer);
const ROOM_MAX = 8 * 1024 * 1024;

function writeAll(bytes) {
  for (let sent = 0; sent < bytes.length;) sent += writeSome(bytes.subarray(sent));
}

// Write a text behind a head of so many bytes, which the caller has filled from the fifth byte on.
function writeText(head, text) {
  const bound = head + text.length * 3;
  if (bound <= room.length) {
    const { written } = encoder.encodeInto(text, room.subarray(head));
    view.setUint32(0, head - 4 + written, true);
    writeAll(room.subarray(0, head + written));
    return;
  }
  const filled = room;
  if (bound <= ROOM_MAX) {
    room = new Uint8Array(bound);
    view = new DataView(room.buffer);
    room.set(filled.subarray(0, head));
    writeText(head, text);
    return;
  }
  const body = encoder.encode(text), bytes = new Uint8Array(head + body.length);
  bytes.set(filled.subarray(0, head));
  bytes.set(body, head);
  new DataView(bytes.buffer).setUint32(0, head - 4 + body.length, true);
  writeAll(bytes);
}

const write = (frame) => writeText(4, stringify(frame));
const TEXT = 0x74, CALL = 0x63, DONE = 0x64, SETTLE = 0x73;

function writeLetter(letter, cell, text, numbers, first, second) {
  view.setUint8(4, letter);
  view.setUint32(5, cell, true);
  if (numbers > 0) view.setUint32(9, first, true);
  if (numbers > 1) view.setUint32(13, second, true);
  writeText(9 + 4 * numbers, text);
}

const say = {
  __proto__: null,
  text: (cell, text) => writeLetter(TEXT, cell, text, 0),
  // A call without an input has the highest bit of its tool's number set.
  call: (cell, id, tool, json) => writeLetter(CALL, cell, json ?? '', 2, id, json === undefined ? (tool | 0x80000000) >>> 0 : tool),
  done: (cell, error, unfit) => writeLetter(DONE, cell, error ?? '', 1, (error === undefined ? 0 : 1) | (unfit ? 2 : 0)),
};

// Read without leaving this thread: an asynchronous read costs a hop to another and back. Nothing else wants to run
// meanwhile: timers and tools live in the host, and a turn of the event loop comes before each read.
const readSome = host ? (into) => host.stdin.readSync(into) : (into) => fs.readSync(0, into);
const turn = () => new Promise((resolve) => nextTurn(resolve));

function readAnswer(bytes) {
  const numbers = new DataView(bytes.buffer, bytes.byteOffset);
  const number = (at) => numbers.getUint32(at, true);
  return ['settle', number(5), number(9), number(13) === 1, decoder.decode(bytes.subarray(17))];
}

function* frames() {
  let held = new Uint8Array(64 * 1024), from = 0, to = 0;
  for (;;) {
    while (to - from >= 4) {
      const length = new DataView(held.buffer, from, 4).getUint32(0, true);
      if (to - from < 4 + length) {
        if (held.length < 4 + length) {
          const larger = new Uint8Array(4 + length);
          larger.set(held.subarray(from, to));
          held = larger; to -= from; from = 0;
        }
        break;
      }
      const frame = held[from + 4] === SETTLE
        ? readAnswer(held.subarray(from, from + 4 + length))
        : parse(decoder.decode(held.subarray(from + 4, from + 4 + length)));
      from += 4 + length;
      yield frame;
    }
    if (from > 0) { held.copyWithin(0, from, to); to -= from; from = 0; }
    if (to === 0 && held.length > 1024 * 1024) held = new Uint8Array(64 * 1024);
    const n = readSome(held.subarray(to));
    if (!n) return;
    to += n;
  }
}

// ---- cells

const stored = new Map(); // The session's values as this process knows them; only whole cells change them.
const sizes = new Map(); // What each takes, key and value in JSON; a cell counts its own beside them.
let storedBytes = 0;
const sizeOf = (key, json) => byteLength(stringify(key)) + byteLength(json);

function remember(key, json) {
  const size = sizeOf(key, json);
  storedBytes += size - (sizes.get(key) ?? 0);
  sizes.set(key, size);
  stored.set(key, json);
}

// Count what a cell stores, or say why it cannot: its session has no room for it. The host counts again.
function store(bridge, key, json) {
  const size = sizeOf(key, json);
  const beside = bridge.bytes - (bridge.sizes.get(key) ?? sizes.get(key) ?? 0);
  if (beside + size > bridge.room) {
    write(['full', bridge.cell]);
    return `It takes ${size} bytes, and its session stores ${beside} bytes beside it, of at most ${bridge.room}.`;
  }
  bridge.bytes = beside + size;
  bridge.sizes.set(key, size);
  write(['store', bridge.cell, key, json]);
}
let prelude, current, ended;

function end(bridge) {
  bridge.live = false;
  if (current === bridge) current = undefined;
  ended = bridge.cell;
}

function start(cell, source, tools, changes, room) {
  for (const [key, json] of changes) remember(key, json);
  const bridge = { cell, live: true, inside: undefined, unfit: IMPORTS.test(source), room, bytes: storedBytes, sizes: new Map() };
  const post = (kind, a, b, c) => {
    if (!bridge.live) return;
    if (kind === 'store') return store(bridge, a, b);
    const known = say[kind];
    if (kind === 'done') b ||= bridge.unfit;
    if (known === undefined) write([kind, cell, a, b, c]);
    else known(cell, a, b, c);
    if (kind === 'done') end(bridge);
  };
  const peek = (key) => stored.get(key);
  const context = createContext(bare);
  bridge.inside = prelude.runInContext(context)(post, peek, stringify(tools));
  current = bridge;
  evaluate(bridge, context, source).catch(() => bridge.live && post('done', 'exec runtime ended unexpectedly', true));
}

// With a hook for `import()` the engine keeps the context for ever. Only a cell that seems to call it has one, and its
// process is not used again; any other call is refused by the engine, with an error of the cell's own realm.
const IMPORTS = /\bimport\s*\(/;
function refuseImport() { throw 'unsupported import in exec'; }

async function evaluate(bridge, context, source) {
  const { inside } = bridge;
  const fail = (text) => { if (bridge.live) { say.done(bridge.cell, text, bridge.unfit); end(bridge); } };
  // The module waits for a hidden one: its code then starts from a microtask, with a clean stack, and after the
  // reactions below were attached to its promise, so that no code of the cell can see them being attached.
  const secret = random(), prefix = `import"${secret}";`;
  const body = source.startsWith('#!') ? `//${source.slice(2)}` : source;
  let module;
  try {
    module = new SourceTextModule(prefix + body, {
      context, identifier: 'exec_main.mjs', columnOffset: -prefix.length,
      importModuleDynamically: bridge.unfit ? refuseImport : undefined,
    });
  } catch (error) {
    return fail(`${error.name}: ${error.message}`);
  }
  const starter = new SourceTextModule('await 0;await 0;await 0;await 0;await 0;await 0;', { context, identifier: 'greenroom:start' });
  let refused;
  try {
    await module.link((specifier) => {
      if (specifier === secret) return starter;
      refused ??= specifier;
      throw 'refused';
    });
  } catch (error) {
    return fail(refused === undefined ? `${error.name}: ${error.message}` : `Unsupported import in exec: ${refused}`);
  }
  return module.evaluate().then(() => inside.fulfilled(), (error) => inside.rejected(error));
}

// ---- what is left of this realm

function lock() {
  const language = new Set(Object.getOwnPropertyNames(vm.runInContext('globalThis', createContext(bare))));
  const keep = [...language].map((name) => { try { return globalThis[name]; } catch { return undefined; } });
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!language.has(name)) try { delete globalThis[name]; } catch { /* It belongs to the engine for good. */ }
  }
  const old = Error.prepareStackTrace;
  Error.prepareStackTrace = (_, sites) => sites;
  const site = Object.getPrototypeOf(new Error('x').stack[0]);
  Error.prepareStackTrace = old;
  const makers = [function () {}, async function () {}, function* () {}, async function* () {}].map(Object.getPrototypeOf);
  for (const maker of makers) Object.defineProperty(maker, 'constructor', { value: undefined });
  const iterators = [[][Symbol.iterator](), new Map().keys(), new Set().keys(), ''[Symbol.iterator](),
    ''.matchAll(/x/g), function* () {}.prototype, async function* () {}.prototype].map(Object.getPrototypeOf);
  const seen = new Set([globalThis]);
  const queue = [...keep, ...makers, ...iterators, site];
  while (queue.length > 0) {
    const thing = queue.pop();
    if ((typeof thing !== 'object' && typeof thing !== 'function') || thing === null || seen.has(thing)) continue;
    seen.add(thing);
    if (ArrayBuffer.isView(thing)) continue;
    queue.push(Object.getPrototypeOf(thing));
    const properties = Object.getOwnPropertyDescriptors(thing);
    for (const key of Reflect.ownKeys(properties)) {
      const { value, get, set } = properties[key];
      queue.push(value, get, set);
    }
    try { Object.freeze(thing); } catch { /* A proxy of the engine that refuses: it stays as it was. */ }
  }
}

async function main() {
  if (host) {
    globalThis.addEventListener('unhandledrejection', (event) => event.preventDefault());
  } else {
    node.on('unhandledRejection', () => {});
    node.removeAllListeners('warning');
  }
  const version = host ? `deno ${host.version.deno}, v8 ${host.version.v8}` : `node ${node.versions.node}, v8 ${node.versions.v8}`;
  for (const frame of frames()) {
    const [kind, cell] = frame;
    if (kind === 'hello') {
      prelude = new Script(frame[1], { filename: 'greenroom:prelude' });
      const first = createContext(bare); // Whatever the engine makes on first use is made before the freeze.
      const module = new SourceTextModule('await 0', { context: first, identifier: 'greenroom:first' });
      await module.link(() => {});
      await module.evaluate();
      lock();
      write(['ready', 0, version]);
    } else if (kind === 'run') start(cell, frame[2], frame[3], frame[4], frame[5]);
    else if (current === undefined || current.cell !== cell) continue; // News for a cell that is over.
    else if (kind === 'settle') current.inside.settle(frame[2], frame[3], frame[4]);
    else if (kind === 'fire') current.inside.fire(frame[2]);
    // The next turn comes only after every microtask has run, and so it is for each piece of news when several came at
    // once. A cell that has ended and never lets it come is killed.
    await turn();
    if (ended !== undefined) write(['idle', ended]);
    ended = undefined;
  }
  leave();
}

main();
