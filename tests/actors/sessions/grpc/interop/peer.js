// The contract's service and a client for it, made with @grpc/grpc-js.
//   node peer.js serve          prints {"port": N}, then {"lost": true} for each lease that was let go
//   node peer.js call TARGET    reads one JSON call a line, prints one JSON answer a line
"use strict";
const readline = require("node:readline");
const grpc = require(process.env.GRPC_JS_FOLDER + "/node_modules/@grpc/grpc-js");

const same = (bytes) => bytes;
const LIMITS = {"grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1};
const HARD_TEXT = "100 % 'grün'\n\u2603 ";
const DETAILS = Buffer.from([0x08, 0x05, 0x12, 0x04, 0x74, 0x65, 0x78, 0x74]);
const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");

function pairsOf(metadata) {
  const pairs = [];
  for (const key of Object.keys(metadata.getMap())) {
    for (const value of metadata.get(key)) {
      pairs.push(key.endsWith("-bin") ? [key, {b64: value.toString("base64")}] : [key, value]);
    }
  }
  return pairs;
}

function metadataOf(pairs) {
  const metadata = new grpc.Metadata();
  for (const [key, value] of pairs) {
    metadata.add(key, typeof value === "string" ? value : Buffer.from(value.b64, "base64"));
  }
  return metadata;
}

const failure = (code, details, metadata) => Object.assign(new Error(details), {code, details, metadata});

function methodOf(name, sends, receives) {
  return {
    path: "/contract.Service/" + name, requestStream: sends, responseStream: receives,
    requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same,
  };
}

const METHODS = {
  Echo: methodOf("Echo", false, false), Fail: methodOf("Fail", false, false), Crash: methodOf("Crash", false, false),
  Sleep: methodOf("Sleep", false, false), TimeLeft: methodOf("TimeLeft", false, false),
  Count: methodOf("Count", false, true), Lease: methodOf("Lease", false, true),
  Sum: methodOf("Sum", true, false), Chat: methodOf("Chat", true, true),
};

const HANDLERS = {
  Echo(call, answer) {
    const found = metadataOf(pairsOf(call.metadata).filter(([key]) => key.startsWith("x-")));
    call.sendMetadata(found);
    const trailers = metadataOf([["x-trailing", "yes"]]);
    trailers.merge(found);
    answer(null, call.request, trailers);
  },
  Fail(call, answer) {
    const metadata = new grpc.Metadata();
    metadata.add("x-why-bin", Buffer.from([0x00, 0xff]));
    metadata.add("grpc-status-details-bin", DETAILS);
    answer(failure(9, HARD_TEXT, metadata));
  },
  Crash(call, answer) { answer(new Error("a secret of the server")); },
  Sleep() {},
  TimeLeft(call, answer) { answer(null, Buffer.from(String((call.getDeadline() - Date.now()) / 1000))); },
  async Count(call) {
    const [number, size] = call.request.toString().split(" ").map(Number);
    for (let index = 0; index < number; index++) {
      const message = size === 0 ? Buffer.from(String(index)) : Buffer.alloc(size);
      if (!call.write(message)) await new Promise((resolve) => call.once("drain", resolve));
    }
    call.end();
  },
  Lease(call) {
    call.sendMetadata(metadataOf([["x-lease", "open"]]));
    call.write(Buffer.from("open"));
    call.on("cancelled", () => say({lost: true}));
  },
  Sum(call, answer) {
    let total = 0;
    call.on("data", (message) => { total += Number(message); });
    call.on("end", () => answer(null, Buffer.from(String(total))));
  },
  Chat(call) {
    call.on("data", (message) => call.write(Buffer.concat([Buffer.from("re: "), message])));
    call.on("end", () => call.end());
  },
};

function serve() {
  const server = new grpc.Server(LIMITS);
  server.addService(METHODS, HANDLERS);
  server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    say({port});
  });
}

const open = new Map();

function call(client, {id, path, requests, metadata, timeout_s: timeoutS, cancel}) {
  if (cancel) return open.get(id).cancel();
  const stream = client.makeBidiStreamRequest(
    path, same, same, metadataOf(metadata), {deadline: Date.now() + timeoutS * 1000});
  const messages = [];
  let headers = [];
  open.set(id, stream);
  stream.on("metadata", (found) => { headers = pairsOf(found); });
  stream.on("data", (message) => {
    messages.push(message.toString("base64"));
    if (path.endsWith("/Lease")) say({id, first: messages[0], headers});
  });
  stream.on("error", () => {});
  stream.on("status", (status) => {
    open.delete(id);
    say({id, code: status.code, message: status.details, headers, trailers: pairsOf(status.metadata), messages});
  });
  for (const request of requests) stream.write(Buffer.from(request, "base64"));
  stream.end();
}

if (process.argv[2] === "serve") {
  serve();
} else {
  const client = new grpc.Client(process.argv[3], grpc.credentials.createInsecure(), LIMITS);
  readline.createInterface({input: process.stdin}).on("line", (line) => call(client, JSON.parse(line)));
}
