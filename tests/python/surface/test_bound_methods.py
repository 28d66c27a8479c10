"""A bound method of a logger or a handler is like one of a Python function: it lives as long and names its function."""

import copy
import gc
import inspect
import logging
import pickle
import types
import weakref

import pytest

import logspool

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]


@pytest.fixture(params=["logger", "adapter", "handler"])
def bound(request):
    """Give an object and the name of a method of it, while logspool is installed."""
    logspool.install()
    log = logging.getLogger("bound")
    yield {
        "logger": (log, "info"),
        "adapter": (logging.LoggerAdapter(log, {}), "warning"),
        "handler": (logging.StreamHandler(), "emit"),
    }[request.param]
    logspool.uninstall()


def test_a_bound_method_has_the_attributes_of_a_python_method(bound):
    owner, name = bound
    method = getattr(owner, name)

    assert type(method) is types.MethodType and inspect.ismethod(method)
    assert method.__self__ is owner
    assert (method.__func__.__name__, method.__func__.__qualname__) == (name, f"{type(owner).__name__}.{name}")
    assert (method.__module__, method.__name__) == ("logging", name)
    assert method == getattr(owner, name) and hash(method) == hash(getattr(owner, name))
    assert copy.copy(method) == method
    assert inspect.signature(method) == inspect.signature(method.__func__.__get__(owner))
    assert repr(method) == f"<bound method {type(owner).__name__}.{name} of {owner!r}>"


def test_a_weak_reference_to_a_bound_method_lives_as_long_as_its_object(bound):
    owner, name = bound
    reference = weakref.WeakMethod(getattr(owner, name))
    gc.collect()

    assert reference() == getattr(owner, name)

    other = logging.StreamHandler()
    gone = weakref.WeakMethod(other.emit)
    del other
    gc.collect()

    assert gone() is None


def test_the_function_of_a_bound_method_logs_and_refuses_another_class(tmp_path):
    logspool.install()
    log = logging.getLogger("function")
    log.addHandler(handler := logging.FileHandler(tmp_path / "app.log"))
    log.propagate = False
    function = log.error.__func__

    function(log, "by the %s", "function")
    function.__get__(log)("by the method")
    log.removeHandler(handler)
    handler.close()

    assert (tmp_path / "app.log").read_text() == "by the function\nby the method\n"
    for arguments in ((), ("text",)):
        with pytest.raises(TypeError, match=r"Logger\.error\(\)"):
            function(*arguments)
    logspool.uninstall()


def test_a_bound_method_is_pickled_by_its_object():
    logspool.install()
    method = logging.getLogger("pickled").info

    assert pickle.loads(pickle.dumps(method)) == method
    assert [].append.__self__ == [] and type("".join) is types.BuiltinMethodType
    logspool.uninstall()


def test_a_blinker_signal_keeps_a_bound_method():
    blinker = pytest.importorskip("blinker")
    logspool.install()
    signal = blinker.Signal()
    signal.connect(logging.getLogger("receiver").info)
    gc.collect()

    assert len(signal.send("sender")) == 1
    logspool.uninstall()
