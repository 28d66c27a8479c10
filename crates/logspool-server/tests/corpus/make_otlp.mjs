// Make the OpenTelemetry requests of its SDK for Node.js that the decoder is tested with: in JSON.
//
//     npm install @opentelemetry/exporter-logs-otlp-http@0.223.1 @opentelemetry/sdk-logs@0.223.1 \
//         @opentelemetry/resources@2.12.1 && node make_otlp.mjs
//
// In the folder with `node_modules`. The lines of `otlp-node.txt` are those of `otlp-python.txt`.

import { writeFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "here.js"));
const { OTLPLogExporter } = require("@opentelemetry/exporter-logs-otlp-http");
const { LoggerProvider, BatchLogRecordProcessor } = require("@opentelemetry/sdk-logs");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { ROOT_CONTEXT, trace } = require("@opentelemetry/api");

const SECONDS = 1_700_000_000;
const resource = resourceFromAttributes({ "service.name": "shop", "host.name": "web-1", "process.pid": 4711 });

// The body of the one request that reaches a server for records.
async function sent(records) {
  const bodies = [];
  const server = http.createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    bodies.push(Buffer.concat(pieces));
    response.end("{}");
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const exporter = new OTLPLogExporter({ url: `http://127.0.0.1:${server.address().port}/v1/logs` });
  const options = process.env.PROCESSOR_POSITIONAL ? exporter : { exporter };
  const provider = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor(options)] });
  for (const record of records) provider.getLogger("shop.cart").emit(record);
  await provider.shutdown();
  server.close();
  return bodies[0];
}

const timestamp = [SECONDS, 125_000_000];
const span = { traceId: "0102030405060708090a0b0c0d0e0f10", spanId: "1112131415161718", traceFlags: 1 };
const attributes = { user: 7, rate: 0.5, ok: true, list: ["a", "b"], nested: { a: [1, -1] }, "code.lineno": 42, "code.function.name": "pay" };

const expected = (level, message, more, fields) => ({
  time_ns: "TIME", level, logger: "shop.cart", message, host: "web-1", process: 4711, ...more,
  fields: { ...fields, "service.name": "shop" },
});

const cases = {
  levels: [
    [1, 5, 9, 13, 17, 21].map((severityNumber) => ({ timestamp, severityNumber, body: "took 5 ms" })),
    [5, 10, 20, 30, 40, 50].map((level) => expected(level, "took 5 ms")),
  ],
  attributes: [
    [{ timestamp, severityNumber: 9, severityText: "INFO", body: "€", attributes, eventName: "clicked" }],
    [expected(20, "€", { line: 42, function: "pay" }, { user: 7, rate: 0.5, ok: true, list: ["a", "b"], nested: { a: [1, -1] }, event_name: "clicked" })],
  ],
  span: [
    [{ timestamp, severityNumber: 9, body: { a: 1 }, context: trace.setSpanContext(ROOT_CONTEXT, span) }],
    [expected(20, '{"a":1}', { trace_id: span.traceId, span_id: span.spanId })],
  ],
};

const lines = [];
for (const [name, [records, meant]] of Object.entries(cases)) {
  lines.push(`${name}\t${(await sent(records)).toString("hex")}\t${JSON.stringify(meant)}\n`);
}
// Too large for a number of JavaScript.
writeFileSync(new URL("otlp-node.txt", import.meta.url), lines.join("").replaceAll('"TIME"', `${SECONDS}125000000`).replaceAll("€", "\\u20ac"));
process.exit(0);
