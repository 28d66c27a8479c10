// Make the Forward messages of @fluent-org/logger for Node.js that the decoder is tested with.
//
//     npm install @fluent-org/logger@1.0.10 && node make_forward.mjs
//
// In the folder with `node_modules`. The lines of `forward-node.txt` are those of `forward-python.txt`. On the lines of
// `handshake-node.txt` stand what the logger's own server and client say to each other at the beginning.

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "here.js"));
const { FluentClient, FluentServer, EventTime } = require("@fluent-org/logger");
const { decode } = require("@msgpack/msgpack");

const SECONDS = 1_700_000_000;
const RECORD = { message: "took 5 ms", level: "warning", user: 7, rate: 0.5, none: null, nested: { list: [1, true] }, wide: "€" };
const FIELDS = { user: 7, rate: 0.5, none: null, nested: { list: [1, true] }, wide: "€" };

// What a client sends for two records, and what its server says to it: pieces as they came through a proxy.
async function sent(options, security) {
  const server = new FluentServer({ listenOptions: { host: "127.0.0.1", port: 0 }, ...security });
  await server.listen();
  const pieces = { client: [], server: [] };
  const proxy = net.createServer((client) => {
    const upstream = net.connect(server.port, "127.0.0.1");
    client.on("data", (piece) => (pieces.client.push(piece), upstream.write(piece)));
    upstream.on("data", (piece) => (pieces.server.push(piece), client.write(piece)));
    client.on("close", () => upstream.end());
    upstream.on("close", () => client.end());
    client.on("error", () => {});
    upstream.on("error", () => {});
  });
  await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));
  const socket = { host: "127.0.0.1", port: proxy.address().port, disableReconnect: true };
  const client = new FluentClient("app", { socket, disableAutoconnect: true, flushInterval: 50, ...options });
  await client.connect();
  await Promise.all([
    client.emit("follow", RECORD, new EventTime(SECONDS, 125_000_000)),
    client.emit("follow", RECORD, new EventTime(SECONDS, 125_000_000)),
  ]);
  await client.disconnect();
  await server.close();
  proxy.close();
  return pieces;
}

const line = (name, bytes, meant) => `${name}\t${Buffer.from(bytes).toString("hex")}\t${JSON.stringify(meant)}\n`;

const record = {
  time_ns: "TIME", level: 30, logger: "app.follow", message: "took 5 ms", fields: FIELDS,
};

function expected(frame) {
  const options = decode(frame).at(-1);
  const chunk = options?.chunk === undefined ? {} : { chunk: options.chunk };
  return { tag: "app.follow", records: [record, record], ...chunk };
}

const messages = [];
for (const eventMode of ["Forward", "PackedForward", "CompressedPackedForward"]) {
  for (const ack of [undefined, { ackTimeout: 5000 }]) {
    const frame = Buffer.concat((await sent({ eventMode, ack })).client);
    messages.push(line(`${eventMode}${ack ? " with ack" : ""}`, frame, expected(frame)));
  }
}
const both = Buffer.concat((await sent({ eventMode: "Message" })).client);
messages.push(line("Message", both.subarray(0, both.length / 2), { tag: "app.follow", records: [record] }));
// Too large for a number of JavaScript.
writeFileSync(new URL("forward-node.txt", import.meta.url), messages.join("").replaceAll('"TIME"', `${SECONDS}125000000`).replaceAll("€", "\\u20ac"));

const security = { serverHostname: "service", sharedKey: "shared", authorize: true, userDict: { me: "secret" } };
const proof = { clientHostname: "client", sharedKey: "shared", username: "me", password: "secret" };
const words = [];
for (const authorize of [false, true]) {
  const pieces = await sent({ security: proof, eventMode: "Message" }, { security: { ...security, authorize } });
  const name = authorize ? "password" : "key";
  words.push(line(`${name} helo`, pieces.server[0]), line(`${name} ping`, pieces.client[0]), line(`${name} pong`, pieces.server[1]));
}
writeFileSync(new URL("handshake-node.txt", import.meta.url), words.join("").replaceAll("undefined", "null"));
process.exit(0);
