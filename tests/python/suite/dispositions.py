"""Signal dispositions of a program started from a terminal; tests and the programs that they start rely on them."""

import signal

# Python ignores these two by itself, and `subprocess` resets them in the programs that it starts.
IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}


def reset() -> None:
    """Give every ignored or blocked signal its default effect again; called from `pytest_configure`.

    `nohup` ignores SIGHUP and a shell ignores SIGINT and SIGQUIT for its background jobs. Programs inherit that, so a
    test that ends a program by such a signal would wait for ever.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
