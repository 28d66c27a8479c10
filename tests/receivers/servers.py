"""Real receivers: VictoriaLogs, an OpenTelemetry Collector, Graylog's reader and Loki.

Tests start and kill them, and read the records that they have stored.
"""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import receiver_tools
from ports import free_port
from suite.waiting import until

SECONDS = 60

#: Largest answer of Loki, in bytes.
LONG_ANSWER = 1 << 27


class Server:
    """A process with ports and a folder of its own, which it keeps over restarts."""

    #: The ways to end it after which it still has every acknowledged record.
    keeps = ("SIGTERM",)

    def __init__(self, folder, pair, secure):
        folder.mkdir()
        self.folder, self.pair = folder, pair
        #: Whether its interface for HTTP is HTTPS.
        self.secure = secure
        self.process = None
        self.ports = {name: free_port() for name in (*self.streams, *self.datagrams)}
        self.program = self.tool()

    def start(self):
        """Start it, and wait until it takes connections at all its ports."""
        with (self.folder / "server.log").open("a") as log:
            variables = {**os.environ, "TZ": "UTC"}
            self.process = subprocess.Popen(self.command(), cwd=self.folder, stdout=log, stderr=log, env=variables)
        until(self.is_ready, SECONDS, f"{self.program.name} is ready")
        return self

    def is_ready(self):
        """Return whether it accepts connections."""
        assert self.process.poll() is None, (self.folder / "server.log").read_text()[-3000:]
        for name in self.streams:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.ports[name])) != 0:
                    return False
        return all(self.unread(name) is not None for name in self.datagrams)

    def unread(self, name):
        """Return how many bytes of datagrams it has not read at a port; None if the port is not open."""
        with open("/proc/net/udp", encoding="ascii") as table:
            for line in table:
                _, local, _, _, queues, *_ = line.split()
                if local.endswith(f":{self.ports[name]:04X}"):
                    return int(queues.partition(":")[2], 16)
        return None

    def stop(self, number=signal.SIGTERM):
        """End it, by its process id."""
        self.process.send_signal(number)
        self.process.wait(SECONDS)

    def end(self):
        """Kill it if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.stop(signal.SIGKILL)


class Http:
    """The common parts of servers with an HTTP interface."""

    def ask(self, path, **query):
        """Return the body of the answer to a query."""
        scheme = "https" if self.secure else "http"
        url = f"{scheme}://127.0.0.1:{self.ports['http']}{path}?{urllib.parse.urlencode(query)}"
        context = ssl._create_unverified_context() if self.secure else None
        handlers = [
            urllib.request.ProxyHandler({}),
            *([urllib.request.HTTPSHandler(context=context)] if context else []),
        ]
        with urllib.request.build_opener(*handlers).open(url, timeout=SECONDS) as answer:
            return answer.read().decode()

    def answers(self, path):
        """Return whether a path has an answer."""
        with contextlib.suppress(OSError):
            self.ask(path)
            return True
        return False


class VictoriaLogs(Http, Server):
    """VictoriaLogs. It keeps acknowledged records in memory for a second, so a SIGKILL may lose those."""

    tool = staticmethod(receiver_tools.victoria_logs)
    streams = ("http", "syslog-tcp", "syslog-tls")
    datagrams = ("syslog-udp",)

    def command(self):
        certificate, key = self.pair
        listen = ",".join(f"127.0.0.1:{self.ports[name]}" for name in ("syslog-tcp", "syslog-tls"))
        return [
            str(self.program),
            f"-storageDataPath={self.folder / 'data'}",
            "-inmemoryDataFlushInterval=1s",
            f"-httpListenAddr=127.0.0.1:{self.ports['http']}",
            f"-syslog.listenAddr.tcp={listen}",
            "-syslog.tls=false,true",
            f"-syslog.tlsCertFile=,{certificate}",
            f"-syslog.tlsKeyFile=,{key}",
            f"-syslog.listenAddr.udp=127.0.0.1:{self.ports['syslog-udp']}",
            *(["-tls", f"-tlsCertFile={certificate}", f"-tlsKeyFile={key}"] if self.secure else []),
        ]

    def is_ready(self):
        return super().is_ready() and self.answers("/health")

    def records(self):
        """Return all records as objects of their fields, which are texts."""
        found = self.ask("/select/logsql/query", query="*", limit=0)
        return [json.loads(line) for line in found.splitlines()]


class Collector(Server):
    """An OpenTelemetry Collector that appends each record to a file. It writes the file every tenth of a second."""

    tool = staticmethod(receiver_tools.collector)
    streams = ("otlp", "otlp-tls", "forward", "syslog-tcp", "syslog-tls", "lines-tcp", "lines-tls")
    datagrams = ("syslog-udp", "lines-udp")

    def start(self):
        # A killed one leaves its socket, and the next one does not take its place.
        (self.folder / "forward.socket").unlink(missing_ok=True)
        return super().start()

    def command(self):
        certificate, key = map(str, self.pair)
        at = {name: f"127.0.0.1:{port}" for name, port in self.ports.items()}
        tls = {"cert_file": certificate, "key_file": key}
        syslog = {"protocol": "rfc5424"}
        counted = {**syslog, "enable_octet_counting": True}
        receivers = {
            "otlp": {"protocols": {"http": {"endpoint": at["otlp"]}}},
            "otlp/tls": {"protocols": {"http": {"endpoint": at["otlp-tls"], "tls": tls}}},
            "fluent_forward": {"endpoint": at["forward"]},
            "fluent_forward/unix": {"endpoint": f"unix://{self.folder}/forward.socket"},
            "syslog/udp": {"udp": {"listen_address": at["syslog-udp"]}, **syslog},
            "syslog/tcp": {"tcp": {"listen_address": at["syslog-tcp"]}, **counted},
            "syslog/tls": {"tcp": {"listen_address": at["syslog-tls"], "tls": tls}, **counted},
            "tcplog": {"listen_address": at["lines-tcp"]},
            "tcplog/tls": {"listen_address": at["lines-tls"], "tls": tls},
            "udplog": {"listen_address": at["lines-udp"]},
        }
        exporter = {"path": str(self.folder / "kept"), "append": True, "flush_interval": "100ms"}
        service = {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"logs": {"receivers": list(receivers), "exporters": ["file"]}},
        }
        configuration = {"receivers": receivers, "exporters": {"file": exporter}, "service": service}
        # JSON is YAML.
        (self.folder / "collector.yaml").write_text(json.dumps(configuration, indent=1))
        return [str(self.program), f"--config=file:{self.folder}/collector.yaml"]

    def records(self):
        """Return all records: the parts of OTLP, the attributes and the fields of the body, side by side."""
        kept = self.folder / "kept"
        found = []
        for line in kept.read_text().splitlines(keepends=True) if kept.exists() else []:
            if line.endswith("\n"):
                # A killed collector leaves half a line, and the next one appends to it.
                found += flattened(json.loads(line[line.rindex(BEGINNING) :]))
        return found


#: How the collector begins each line of its file.
BEGINNING = '{"resourceLogs":'


def flattened(exported):
    """Yield the records of an export request in JSON."""
    for resource in exported["resourceLogs"]:
        for scope in resource["scopeLogs"]:
            name = scope.get("scope", {}).get("name", "")
            for record in scope.get("logRecords", []):
                attributes = plain(record.get("attributes", []))
                body = value(record.get("body", {}))
                # The structured data of syslog, and JSON in a line.
                inner = attributes.get("structured_data", {}).get("logspool@32473", {})
                # If a connection is cut, the collector keeps half a message.
                with contextlib.suppress(ValueError):
                    inner = inner or json.loads(body)
                yield {**record, **attributes, **inner, "scope": name, "body": body}


def plain(pairs):
    """Return attributes as a dictionary."""
    return {pair["key"]: value(pair["value"]) for pair in pairs}


def value(found):
    """Return a value of OTLP in JSON."""
    for name, inner in found.items():
        if name == "arrayValue":
            return [value(each) for each in inner.get("values", [])]
        if name == "kvlistValue":
            return plain(inner.get("values", []))
        return int(inner) if name == "intValue" else inner
    return None


class GraylogReader(Server):
    """Graylog's library for Go, which reads GELF by UDP, and a file with the messages."""

    tool = staticmethod(receiver_tools.graylog_reader)
    streams = ()
    datagrams = ("gelf-udp",)

    def command(self):
        return [str(self.program), f"127.0.0.1:{self.ports['gelf-udp']}", str(self.folder / "kept")]

    def records(self):
        """Return all messages; `exception` is what `full_message` has after the message."""
        kept = self.folder / "kept"
        lines = kept.read_text().splitlines(keepends=True) if kept.exists() else []
        # Of the last one there may be only a part yet.
        messages = [json.loads(line) for line in lines if line.endswith("\n")]
        for message in messages:
            message["exception"] = message.get("full_message", "").removeprefix(message["short_message"] + "\n")
        return messages


class Loki(Http, Server):
    """Grafana Loki with its files in a folder. Its log of writes keeps acknowledged records over a SIGKILL."""

    tool = staticmethod(receiver_tools.loki)
    keeps = ("SIGTERM", "SIGKILL")
    streams = ("http", "grpc")
    datagrams = ()

    def command(self):
        certificate, key = map(str, self.pair)
        schema = {
            "from": "2024-01-01",
            "store": "tsdb",
            "object_store": "filesystem",
            "schema": "v13",
            "index": {"prefix": "index_", "period": "24h"},
        }
        server = {"http_listen_address": "127.0.0.1", "http_listen_port": self.ports["http"], "log_level": "warn"}
        server |= {"grpc_listen_address": "127.0.0.1", "grpc_listen_port": self.ports["grpc"]}
        # An answer with all records of a test is longer than the usual 4 MiB.
        server |= {"grpc_server_max_recv_msg_size": LONG_ANSWER, "grpc_server_max_send_msg_size": LONG_ANSWER}
        if self.secure:
            server["http_tls_config"] = {"cert_file": certificate, "key_file": key}
        configuration = {
            "auth_enabled": False,
            "analytics": {"reporting_enabled": False},
            "server": server,
            "common": {
                "instance_addr": "127.0.0.1",
                "path_prefix": str(self.folder / "data"),
                "replication_factor": 1,
                "ring": {"kvstore": {"store": "inmemory"}},
                "storage": {
                    "filesystem": {
                        "chunks_directory": str(self.folder / "data/chunks"),
                        "rules_directory": str(self.folder / "data/rules"),
                    }
                },
            },
            "schema_config": {"configs": [schema]},
            # A single one is ready at once.
            "ingester": {"lifecycler": {"min_ready_duration": "0s", "final_sleep": "0s"}},
            "frontend_worker": {"grpc_client_config": {"max_send_msg_size": LONG_ANSWER}},
            "limits_config": {"max_entries_limit_per_query": 200_000},
        }
        (self.folder / "loki.yaml").write_text(json.dumps(configuration, indent=1))
        return [str(self.program), f"-config.file={self.folder / 'loki.yaml'}"]

    def is_ready(self):
        return super().is_ready() and self.answers("/ready")

    def records(self):
        """Return all records: the time, the labels, and the fields of the line."""
        found = self.select('{app="shop"}', 200_000, direction="forward")
        return [{**json.loads(line), "_time": moment, "_labels": labels} for labels, moment, line in found]

    def select(self, query, limit, **options):
        """Return the labels, with the metadata, the time and the line of each record that a query finds."""
        now = time.time_ns()
        options |= {"query": query, "limit": limit, "start": now - 3600 * 10**9, "end": now + 60 * 10**9}
        streams = json.loads(self.ask("/loki/api/v1/query_range", **options))["data"]["result"]
        return [(stream["stream"], *entry[:2]) for stream in streams for entry in stream["values"]]


SERVERS = {"victoria-logs": VictoriaLogs, "collector": Collector, "graylog-reader": GraylogReader, "loki": Loki}
