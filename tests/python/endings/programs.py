"""The programs, one for each way to end. Each logs `LINES` numbered lines per writer to `app.log`, then ends."""

from dataclasses import dataclass

LINES = 3000

_PRELUDE = """\
import atexit, logging, multiprocessing, os, signal, sys, threading
from suite import side

def configure():
    logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
    side.install()

log = logging.getLogger("app")

def lines(who="main", count={lines}):
    for number in range(count):
        log.info("%s %d end", who, number)

def wait_for_ever():
    while True:
        signal.pause()
"""


@dataclass(frozen=True)
class Ending:
    """One program; `body` runs after the prelude, `main` under `if __name__ == "__main__"`."""

    name: str
    body: str
    main: str = ""
    # The order of several writers is not defined, so their lines are sorted before the comparison.
    several_writers: bool = False
    options: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        main = "".join(f"    {line}\n" for line in self.main.splitlines())
        return _PRELUDE.format(lines=LINES) + self.body + (f"\nif __name__ == '__main__':\n{main}" if main else "")


def _signalled(number: str, before: str = "") -> str:
    return f"configure()\n{before}\nlines()\nos.kill(os.getpid(), signal.{number})\nwait_for_ever()\n"


_EVERY_SIGNAL = """\
STAY = {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
    signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH,
}
configure()
for number in sorted(signal.valid_signals() - STAY):
    child = os.fork()
    if child == 0:
        signal.signal(number, signal.SIG_DFL)
        lines(f"child{int(number)}", 100)
        os.kill(os.getpid(), number)
        wait_for_ever()
    print(int(number), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    log.info("parent of %d 1 end", number)
lines("parent")
"""

_CORE_DUMPS = """import resource, shutil, tempfile
configure()
for number in (signal.SIGQUIT, signal.SIGXCPU, signal.SIGSYS, signal.SIGTRAP):
    # Where the core is written to the working directory.
    folder = tempfile.mkdtemp()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        os.chdir(folder)
        lines(f"child{int(number)}")
        os.kill(os.getpid(), number)
        wait_for_ever()
    status = os.waitpid(child, 0)[1]
    print(os.WTERMSIG(status), os.WCOREDUMP(status))
    shutil.rmtree(folder)
lines("parent")
"""

_IN_CHILD = """\
configure()
lines("parent")
child = os.fork()
if child == 0:
    lines("child")
    {end}
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
log.info("parent again 1 end")
"""

_CHILDREN = """\
def child(who):
    {configure}
    lines(f"child{{who}}")
"""

_PROCESSES = """\
context = multiprocessing.get_context({method!r})
configure()
lines("parent", 100)
children = [context.Process(target=child, args=(who,)) for who in range(2)]
for each in children:
    each.start()
for each in children:
    each.join()
print([each.exitcode for each in children])
"""

_POOL = """\
context = multiprocessing.get_context({method!r})
configure()
with context.Pool(2) as pool:
    pool.map(child, range(4), chunksize=1)
    {end}
"""

_EXECUTOR = """\
from concurrent.futures import ProcessPoolExecutor
configure()
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context({method!r})) as executor:
    list(executor.map(child, range(4)))
"""


def _method(method: str) -> str:
    """Return the statement with which a child configures logging; a forked child inherits the configuration."""
    return "pass" if method == "fork" else "configure()"


ENDINGS = [
    # Normal ends.
    Ending("return", "configure()\nlines()\n"),
    Ending("return_of_an_optimised_run", "configure()\nlines()\n", options=("-OO", "-X", "dev")),
    Ending("sys_exit", "configure()\nlines()\nsys.exit(3)\n"),
    Ending("sys_exit_with_a_message", "configure()\nlines()\nsys.exit('the message')\n"),
    Ending("exception", "configure()\nlines()\nraise ValueError('on purpose')\n"),
    Ending(
        "exception_logged_by_an_excepthook",
        """\
def hook(kind, error, trace):
    log.error("hook %s", error)
sys.excepthook = hook
configure()
lines()
raise ValueError("on purpose")
""",
    ),
    Ending(
        "exit_in_a_thread",
        """\
configure()
threading.Thread(target=lambda: (lines("thread"), sys.exit(5))).start()
""",
    ),
    Ending(
        "thread_that_outlives_the_main_thread",
        """\
configure()
ready = threading.Event()
threading.Thread(target=lambda: (ready.wait(), lines("thread"))).start()
lines()
ready.set()
""",
    ),
    Ending("interrupt", _signalled("SIGINT")),
    Ending(
        "interrupt_that_is_caught",
        """\
configure()
try:
    lines()
    os.kill(os.getpid(), signal.SIGINT)
    wait_for_ever()
except KeyboardInterrupt:
    log.info("interrupted 1 end")
""",
    ),
    Ending("os_exit", "configure()\nlines()\nos._exit(4)\n"),
    Ending(
        "os_exit_in_a_thread",
        """\
configure()
threading.Thread(target=lambda: (lines("thread"), os._exit(6))).start()
wait_for_ever()
""",
    ),
    Ending(
        "os_exit_after_the_logger_was_reconfigured",
        """\
configure()
lines("first")
logging.basicConfig(filename="second.log", level=logging.INFO, format="%(message)s", force=True)
lines("second")
os._exit(0)
""",
    ),
    # Another program replaces this one (exec).
    *(
        Ending(name, f"configure()\nlines()\nsys.stdout.flush()\n{call}\n")
        for name, call in (
            ("execv", "os.execv(sys.executable, [sys.executable, '-c', 'print(\"the next program\")'])"),
            ("execve", "os.execve(sys.executable, [sys.executable, '-c', 'print(1)'], dict(os.environ))"),
            ("execvp", "os.execvp('sh', ['sh', '-c', 'wc -l < app.log'])"),
            ("execl", "os.execl('/bin/sh', 'sh', '-c', 'wc -l < app.log; exit 9')"),
            ("execlp", "os.execlp('sh', 'sh', '-c', 'tail -n 1 app.log')"),
        )
    ),
    Ending(
        "exec_that_fails",
        """\
configure()
lines()
try:
    os.execv("/nonexistent", ["x"])
except FileNotFoundError:
    log.info("went on 1 end")
""",
    ),
    Ending(
        "exec_of_a_program_that_logs_to_the_same_file",
        """\
if len(sys.argv) == 1:
    configure()
    lines("first")
    os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
configure()
lines("second")
""",
    ),
    Ending(
        "subprocess_that_reads_the_file_after_flush",
        """\
import subprocess
configure()
lines()
logging.getLogger().handlers[0].flush()
print(subprocess.run(["wc", "-l", "app.log"], capture_output=True, text=True).stdout)
""",
    ),
    # Signals.
    Ending("sigterm", _signalled("SIGTERM")),
    Ending("sighup", _signalled("SIGHUP")),
    *(Ending(number.lower(), _signalled(number)) for number in ("SIGQUIT", "SIGUSR1", "SIGXCPU", "SIGALRM")),
    Ending(
        "sigpipe_at_its_default_since_before_install",
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n" + _signalled("SIGPIPE"),
    ),
    Ending(
        "sigpipe_at_its_default_since_after_install",
        _signalled("SIGPIPE", "signal.signal(signal.SIGPIPE, signal.SIG_DFL)"),
    ),
    Ending("every_signal_that_ends_a_process_by_default", _EVERY_SIGNAL, several_writers=True),
    Ending("core_dumps", _CORE_DUMPS, several_writers=True),
    Ending("quick_exit_of_the_c_library", "import ctypes\nconfigure()\nlines()\nctypes.CDLL(None).quick_exit(8)\n"),
    Ending(
        "sigterm_while_a_thread_sleeps_in_c",
        """\
import time
configure()
threading.Thread(target=time.sleep, args=(60,)).start()
lines()
os.kill(os.getpid(), signal.SIGTERM)
wait_for_ever()
""",
    ),
    Ending(
        "sigterm_to_a_handler_set_before_install",
        """\
def end(number, frame):
    log.info("handler %d end", number)
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
"""
        + _signalled("SIGTERM"),
    ),
    Ending(
        "sigterm_to_a_handler_set_after_install",
        """\
def end(number, frame):
    log.info("handler %d end", number)
    sys.exit(7)
"""
        + _signalled("SIGTERM", "signal.signal(signal.SIGTERM, end)"),
    ),
    Ending(
        "sigterm_ignored",
        """\
signal.signal(signal.SIGTERM, signal.SIG_IGN)
configure()
lines()
os.kill(os.getpid(), signal.SIGTERM)
log.info("went on 1 end")
""",
    ),
    Ending(
        "sighup_ignored_as_by_nohup",
        """\
signal.signal(signal.SIGHUP, signal.SIG_IGN)
configure()
lines()
os.kill(os.getpid(), signal.SIGHUP)
log.info("went on 1 end")
""",
    ),
    Ending(
        "sigterm_after_its_handler_was_taken_back",
        """\
configure()
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
lines()
os.kill(os.getpid(), signal.SIGTERM)
wait_for_ever()
""",
    ),
    Ending(
        "dispositions_look_as_before",
        """\
configure()
lines()
print([signal.getsignal(number) for number in sorted(signal.valid_signals())])
previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(previous, signal.getsignal(signal.SIGTERM))
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
""",
    ),
    Ending(
        "sigterm_after_uninstall",
        """\
configure()
lines()
side.uninstall()
log.info("afterwards 1 end")
os.kill(os.getpid(), signal.SIGTERM)
wait_for_ever()
""",
    ),
    # Interpreter shutdown.
    Ending(
        "atexit_callbacks_registered_before_and_after",
        """\
atexit.register(log.info, "registered before %d end", 1)
configure()
atexit.register(log.info, "registered after %d end", 1)
atexit.register(lines, "many", 500)
lines()
""",
    ),
    Ending(
        "atexit_callback_that_raises",
        """\
configure()
atexit.register(lambda: 1 / 0)
atexit.register(log.info, "registered after %d end", 1)
lines()
""",
    ),
    Ending("logging_after_shutdown", "configure()\nlines('before')\nlogging.shutdown()\nlines('after', 100)\n"),
    Ending(
        "logging_after_shutdown_and_os_exit",
        """\
configure()
lines("before")
logging.shutdown()
lines("after", 100)
os._exit(0)
""",
    ),
    Ending(
        "object_that_logs_when_it_is_deleted_late",
        """\
class Late:
    def __del__(self, info=log.info):
        info("deleted 1 end")
late = Late()
configure()
lines()
""",
    ),
    Ending(
        "cleared_handlers",
        """\
configure()
lines()
logging.getLogger().handlers.clear()
log.info("nowhere")
""",
    ),
    Ending(
        "stdout_that_was_closed",
        """\
configure()
lines()
sys.stdout.close()
sys.stderr.close()
""",
    ),
    # Forks by hand.
    *(
        Ending(f"forked_child_{name}", _IN_CHILD.format(end=end), several_writers=True)
        for name, end in (
            ("os_exit", "os._exit(3)"),
            ("sys_exit", "sys.exit(3)"),
            ("sigterm", "os.kill(os.getpid(), signal.SIGTERM)"),
            ("exec", "os.execv('/bin/true', ['true'])"),
            ("exception", "raise ValueError('in the child')"),
        )
    ),
    Ending(
        "child_of_a_parent_that_never_logged",
        """\
configure()
child = os.fork()
lines("child" if child == 0 else "parent")
if child:
    os.waitpid(child, 0)
""",
        several_writers=True,
    ),
    Ending(
        "daemon_by_two_forks",
        """\
configure()
lines("first")
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(reader)
        lines("daemon")
        sys.exit(0)
    os._exit(0)
os.close(writer)
os.wait()
os.read(reader, 1)
""",
        several_writers=True,
    ),
    # multiprocessing and its users.
    *(
        Ending(
            f"multiprocessing_children_{method}",
            _CHILDREN.format(configure=_method(method)),
            _PROCESSES.format(method=method),
            several_writers=True,
        )
        for method in ("fork", "spawn", "forkserver")
    ),
    *(
        Ending(
            f"pool_workers_{method}_{name}",
            _CHILDREN.format(configure=_method(method)),
            _POOL.format(method=method, end=end),
            several_writers=True,
        )
        for method in ("fork", "spawn", "forkserver")
        for name, end in (("closed", "pool.close(); pool.join()"), ("terminated", "pass"))
    ),
    *(
        Ending(
            f"process_pool_executor_{method}",
            _CHILDREN.format(configure=_method(method)),
            _EXECUTOR.format(method=method),
            several_writers=True,
        )
        for method in ("fork", "spawn", "forkserver")
    ),
    Ending(
        "multiprocessing_child_terminated",
        """\
def child(ready):
    lines("child")
    ready.set()
    wait_for_ever()
""",
        """\
context = multiprocessing.get_context("fork")
configure()
ready = context.Event()
each = context.Process(target=child, args=(ready,))
each.start()
ready.wait()
each.terminate()
each.join()
print(each.exitcode)
""",
        several_writers=True,
    ),
]
