// The other end of a classical IK handshake on noise-c (C compiled to WebAssembly), over stdin and stdout.
//
// Frames are a 4-byte big-endian length and bytes. Ours are: our static public key, the handshake messages, the
// handshake hash, and then every record that comes, opened and sealed again.
"use strict";

const createNoise = require("noise-c.wasm");

const [, , role, cipher, hash, prologueHex] = process.argv;
const prologue = new Uint8Array(Buffer.from(prologueHex, "hex"));

let buffered = Buffer.alloc(0);
const waiting = [];
const frames = [];
process.stdin.on("data", (chunk) => {
  buffered = Buffer.concat([buffered, chunk]);
  while (buffered.length >= 4 && buffered.length >= 4 + buffered.readUInt32BE(0)) {
    const size = buffered.readUInt32BE(0);
    const frame = new Uint8Array(buffered.subarray(4, 4 + size));
    buffered = buffered.subarray(4 + size);
    if (waiting.length) waiting.shift()(frame);
    else frames.push(frame);
  }
});
process.stdin.on("end", () => process.exit(0));

const read = () =>
  frames.length ? Promise.resolve(frames.shift()) : new Promise((resolve) => waiting.push(resolve));

const write = (frame) => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(frame.length);
  process.stdout.write(Buffer.concat([size, Buffer.from(frame)]));
};

createNoise(async (noise) => {
  try {
    const { NOISE_DH_CURVE25519, NOISE_ROLE_INITIATOR, NOISE_ROLE_RESPONDER } = noise.constants;
    const [secret, open] = noise.CreateKeyPair(NOISE_DH_CURVE25519);
    const initiator = role === "initiator";
    write(open);
    const state = noise.HandshakeState(
      `Noise_IK_25519_${cipher}_${hash}`,
      initiator ? NOISE_ROLE_INITIATOR : NOISE_ROLE_RESPONDER,
    );
    state.Initialize(prologue, secret, initiator ? await read() : null);
    if (initiator) {
      write(state.WriteMessage(Buffer.from("asked by the peer")));
      state.ReadMessage(await read(), true);
    } else {
      state.ReadMessage(await read(), true);
      write(state.WriteMessage(Buffer.from("answered by the peer")));
    }
    write(state.GetHandshakeHash());
    const [send, receive] = state.Split();
    const none = new Uint8Array(0);
    for (;;) write(send.EncryptWithAd(none, receive.DecryptWithAd(none, await read())));
  } catch (error) {
    console.error(String(error));
    process.exit(1);
  }
});
