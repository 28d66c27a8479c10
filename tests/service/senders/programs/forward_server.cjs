// Receive records by the server of @fluent-org/logger, and print a line for each: its tag, and its field `order`.
//
//     node forward_server.cjs [SHARED_KEY]
//
// The first line is the port. The server ends at the end of its input.

const { FluentServer } = require("@fluent-org/logger");

const [sharedKey] = process.argv.slice(2);
const security = sharedKey ? { serverHostname: "receiver", sharedKey } : undefined;
const server = new FluentServer({ listenOptions: { host: "127.0.0.1", port: 0 }, security });
server.on("entry", (tag, time, record) => console.log(tag, record.order));
server.listen().then(() => console.log(server.port));
process.stdin.on("end", () => process.exit(0)).resume();
