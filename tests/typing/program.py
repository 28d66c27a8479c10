"""A program that uses every exported name, for two type checkers. It is never run."""

import logging
import logging.config
import pathlib

import logspool
import logspool.asgi
import logspool.presets
import logspool.wsgi
from logspool.pool import BrokenPool, Future, Pool, PoolStats, Results, Schedule, Semaphore, Timer, as_completed

logspool.install(durability="memory", blocking_levels=["ERROR", logging.CRITICAL], queue_dir=None)
logspool.uninstall()

written: bool = logspool.flush(timeout=1.0)

stats: logspool.Stats = logspool.stats()
native: int = stats.paths["native"]
reason: str = stats.loggers["app"].reason
path: logspool.LoggerPath = stats.loggers["app"]
level: logspool.LevelCount = stats.levels["INFO"]
refused: int = level.refused["queue_full"]
sink: logspool.SinkStats = stats.sinks["app.log"]
count: logspool.SinkCount = sink["INFO"]
dropped: int = count.dropped["deadline"] + sink.total("dropped")
queue: logspool.QueueStats = stats.queue
survives: bool = queue.survives

health: logspool.Health = logspool.health()
reasons: list[str] = health.reasons

report: logspool.Report = logspool.recover("/dev/shm/logspool-0")
delivered: int = report.delivered["app.log"] + report.records

metrics: str = logspool.metrics_text()
asgi = logspool.asgi.Middleware(logspool.asgi.monitor_app(), headers=["user-agent"], replace_server_log=True)
wsgi = logspool.wsgi.Middleware(logspool.wsgi.monitor_app(stalled_seconds=60), logger=logging.getLogger("access"))
request_id: str | None = logspool.asgi.request_id()
logspool.wsgi.set_route("/items/{id}")
version: str = logspool.__version__

logging.getLogger().addHandler(logspool.FileHandler("app.log", mode="a", encoding="utf-8", delay=True))
logging.getLogger().addHandler(logspool.StreamHandler())
logging.getLogger().addHandler(logspool.ServiceHandler("tcp://127.0.0.1:9020", queue_bytes=65_536))
address: str = logspool.ServiceHandler("unix:///run/logspool.sock").address
logspool.ServiceHandler(
    "tls://logs:9443",
    authorities="ca.pem",
    certificate=pathlib.Path("client.pem"),
    key="client.key",
    server_name="logs",
    queue_bytes=65_536,
)
forward: logspool.ServiceHandler = logspool.ForwardHandler("tcp://fluent-bit:24224", tag="shop", shared_key="key")
destination: logging.Handler = logspool.handler("syslog+udp://127.0.0.1:514?facility=local0", queue_bytes=65_536)
receivers: list[logspool.SinkHandler] = [
    logspool.SyslogHandler("tls://logs:6514", app_name="shop"),
    logspool.JournaldHandler(identifier="shop"),
    logspool.GelfHandler("udp://127.0.0.1:12201", compression="gzip"),
    logspool.LineSocketHandler("unix:///run/lines.sock"),
    logspool.LokiHandler("http://127.0.0.1:3100", labels="app=shop"),
    logspool.ElasticsearchHandler("https://search:9200", user="shop", password="secret"),
    logspool.OTLPHandler("http://127.0.0.1:4318", service_name="shop"),
    logspool.SQLiteHandler("app.db", synchronous="full"),
]
logged: bool = logspool.warning_once(logging.getLogger(), "the old interface of %s is in use", "orders")
logspool.log_once(logging.getLogger(), logging.INFO, "once")
logspool.debug_once(logging.getLogger(), "once")
logspool.info_once(logging.getLogger(), "once")
logspool.error_once(logging.getLogger(), "once", stack_info=True)
handler = logspool.ThreadHandler(logging.NullHandler(), queue_size=10, blocking_levels=["ERROR"])
thread: logspool.ThreadHandlerStats = handler.stats()
handler.setFormatter(logspool.JSONFormatter({"message": "message"}, extras=False))

with logspool.bind(request_id="r-1") as bound:
    bound_again: logspool.bind = bound


@logspool.bind(job="nightly")
def double(number: int) -> int:
    return number * 2


@logspool.bind(job="nightly")
async def triple(number: int) -> int:
    return number * 3


doubled: int = double(2)


async def use() -> int:
    return await triple(3)


with Pool(2, thread_name_prefix="work", queue_size=10, overflow="block", context="copy") as pool:
    future: Future[int] = pool.submit(double, 2)
    pool.push(print, "text", end="")
    squares: list[int] = list(pool.map(double, [1, 2, 3], buffersize=2, ordered=False))
    first: Future[int] = pool.submit_first(double, 3)
    urgent: Future[int] = pool.high.submit(double, 3)
    pool.low.push(print, "later")
    pushed: int = pool.push_many(print, [1, 2], ["a", "b"])
    pool.resize(3)
    ended: list[Future[int]] = list(as_completed([future], timeout=1.0))
    idle: bool = pool.wait_idle(timeout=1.0)
    pool_stats: PoolStats = pool.stats()
    depth: int = pool_stats.depth
    jobs_run: int = pool_stats.run_seconds.count
    timer: Timer[int] = pool.submit_later(0.5, double, 2)
    at_noon: Future[int] = pool.submit_at(1_800_000_000.0, double, 2)
    due: float = timer.when
    schedule: Schedule = pool.schedule(60, print, "tick", flush=True)
    runs: int = schedule.runs
    stopped: bool = schedule.cancel()
    streamed: Results[int] = pool.stream(range, 3)
    values: list[int] = list(streamed)
    results: Results[int] = Results(maxsize=10)
    careful = pool.options(priority="high", timeout=1.0, failed_callback=print, results=results)
    limited: Future[int] = careful.submit(double, 3)
    waited: int = results.get(timeout=1.0)
    cancelled: int = pool.cancel() + pool.clear()
broken: type[RuntimeError] = BrokenPool

with Semaphore(2) as taken:
    free: bool = taken
semaphore = Semaphore()
acquired: bool = semaphore.acquire(timeout=0.5)
semaphore.release(n=1)
left: int = semaphore.value


async def wait_for(some: Pool) -> int:
    return await some.run(double, 4)


with logspool.capture_fd(2, logger=logging.getLogger("c"), level=lambda line: "ERROR" if line else 20) as capture:
    captured: int = capture.lines + capture.cut + capture.dropped
logging.config.dictConfig(logspool.presets.uvicorn(file=pathlib.Path("server.log"), json=True))

# What must be an error; strict checkers complain about an ignore that is not needed.
logspool.install(que_bytes=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
logspool.flush("soon")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
logspool.capture_fd(2, level=1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
double("two")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
pool.submit_later("soon", double, 2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
