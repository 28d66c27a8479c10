# Every interpreter started below `python -m logspool run` imports this file. The interpreter may be an old version, so
# the file uses only old syntax.
"""Install logspool, then run the `sitecustomize` that this one hides."""

import os
import sys


def _install():
    if os.environ.get("LOGSPOOL_INSTALL") != "1" or os.environ.get("LOGSPOOL") == "off":
        return
    try:
        from logspool.process import _install
    except ImportError:
        # This environment or interpreter has no logspool of its own: look in the folder of the parent's logspool.
        home = os.environ.get("LOGSPOOL_PACKAGE")
        if not home or sys.version_info < (3, 10):
            return
        _forget()
        # The folder is added at the end and only for this import, so that no other import finds modules there.
        sys.path.append(home)
        try:
            from logspool.process import _install
        except ImportError:
            # The native part of this logspool is for another interpreter, so this process logs without logspool.
            _forget()
            return
        finally:
            sys.path.remove(home)
    _install.install_by_environment()
    if os.environ.get("LOGSPOOL_REPORT") == str(os.getpid()):
        import atexit

        from logspool.commands import _doctor

        atexit.register(_doctor.report)


def _forget():
    for name in [name for name in sys.modules if name.split(".")[0] == "logspool"]:
        del sys.modules[name]


def _hidden():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    if sys.version_info < (3, 4):  # noqa: UP036
        return
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        # Behave as if there were no module `sitecustomize`: `site` expects exactly this error.
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _install()
except Exception as error:
    sys.stderr.write("logspool: not installed in this process: " + str(error) + "\n")
_hidden()
