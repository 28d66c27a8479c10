// What the programs in Node.js share: PROGRAM RECORDS TCP-PORT UDP-PORT HTTP-PORT.
const fs = require("fs");
const net = require("net");

const [file, tcp, udp, http] = process.argv.slice(2);

/** Numbers of JavaScript are doubles: a large one changes here, as in any of its programs. */
exports.records = JSON.parse(fs.readFileSync(file));
exports.host = "127.0.0.1";
exports.ports = { tcp: Number(tcp), udp: Number(udp), http: Number(http) };
exports.url = `http://127.0.0.1:${http}`;

exports.failure = () => new Error("no such customer: Zoë");

/** A connection for lines; the program ends once all of them were sent. */
exports.connect = () => net.createConnection(exports.ports.tcp, exports.host);

/** The name of a level at a logger that calls its levels `names`, from debug on. */
exports.level = (record, names) => names[["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"].indexOf(record.level)];
