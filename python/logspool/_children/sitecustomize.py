# Runs at the start of every interpreter below `python -m logspool run`, also of other versions: plain old syntax.
"""Install logspool, then run the `sitecustomize` that this one hides."""

import os
import sys


def _install():
    if os.environ.get("LOGSPOOL_INSTALL") != "1" or os.environ.get("LOGSPOOL") == "off":
        return
    try:
        from logspool import _install
    except ImportError:
        # Another environment or interpreter: look in the folder of the parent's logspool.
        home = os.environ.get("LOGSPOOL_PACKAGE")
        if not home or sys.version_info < (3, 10):
            return
        _forget()
        # At the end, and only for this import: nothing else is to be found there.
        sys.path.append(home)
        try:
            from logspool import _install
        except ImportError:
            # Its native part is of another interpreter: this one logs as it would.
            _forget()
            return
        finally:
            sys.path.remove(home)
    _install.install_by_environment()


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
        # Behave as if there were no such module: `site` expects exactly this error.
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _install()
except Exception as error:
    sys.stderr.write("logspool: not installed in this process: " + str(error) + "\n")
_hidden()
