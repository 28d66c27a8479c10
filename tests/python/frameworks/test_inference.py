"""Recipes for inference: with ONNX Runtime, and with stand-ins for six packages.

The six packages are transformers, vLLM, Triton, Ray, BentoML and accelerate. They are in no registry, or are larger
than 200 MB with their requirements.
"""

import importlib.util
import re
import sys

import pytest

from frameworks import recipes
from frameworks.test_presets import STAND_IN_OF_VLLM

pytestmark = pytest.mark.real


def needs(*names):
    """Skip a test without these packages."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


#: transformers is 200 MB with its requirements; if it is installed, the test uses it. This text makes the handler as
#: transformers does, with the flush of the stream, and its method for warnings that are logged once.
TRANSFORMERS = """\
import functools
import logging
import sys

_root = logging.getLogger("transformers")
_handler = logging.StreamHandler()
_handler.flush = sys.stderr.flush
_handler.setFormatter(logging.Formatter("[transformers] %(message)s"))
_root.addHandler(_handler)
_root.setLevel(logging.WARNING)
_root.propagate = False


@functools.lru_cache(None)
def warning_once(self, *args, **kwargs):
    self.warning(*args, **kwargs)


logging.Logger.warning_once = warning_once
get_logger = logging.getLogger


def set_verbosity_info():
    _root.setLevel(logging.INFO)


def enable_explicit_format():
    _handler.setFormatter(logging.Formatter("[%(levelname)s|%(filename)s:%(lineno)s] %(asctime)s >> %(message)s"))


def disable_default_handler():
    _root.removeHandler(_handler)


def enable_propagation():
    _root.propagate = True
"""


def test_lines_of_transformers_equal_those_of_stock_logging(tmp_path, queue_dir):
    found = {}
    for side, variables in (("stock", {"LOGSPOOL": "off"}), ("own", {})):
        folder = tmp_path / side
        folder.mkdir()
        recipe = recipes.Recipe("transformers.md", folder, queue_dir, **variables)
        if importlib.util.find_spec("transformers") is None:
            recipe.write("transformers/__init__.py", "")
            recipe.write("transformers/utils/__init__.py", "")
            recipe.write("transformers/utils/logging.py", TRANSFORMERS)
        show = "\nif logspool.stats().installed:\n    print(logspool.stats().loggers['transformers.trainer'])\n"
        recipe.write("train.py", (folder / "train.py").read_text() + show)
        with recipe.serving("python train.py", has_port=False) as server:
            assert server.process.wait(recipes.SECONDS) == 0, server.text("err.txt")
        times = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+", "<time>", server.text("err.txt"))
        found[side] = times.splitlines(), server.text("train.log"), server.text("out.txt").splitlines()
    stock, own = found["stock"], found["own"]

    assert stock[:2] == own[:2]
    assert list(range(100)) == recipes.numbers("\n".join(own[0]), r">> step (\d+)$")
    assert 1 == "\n".join(own[0]).count("said once")
    assert "transformers.trainer in the file\n" == own[1]
    assert "native=102, by_record=0" in own[2][0]


#: accelerate needs PyTorch, which is larger than 200 MB. Like its adapter, this one logs in one process of several.
ACCELERATE = """\
import logging
import sys

import logspool

logspool.install()


class MultiProcessAdapter(logging.LoggerAdapter):
    def log(self, level, msg, *args, **kwargs):
        main_process_only = kwargs.pop("main_process_only", True)
        kwargs.setdefault("stacklevel", 2)
        if self.isEnabledFor(level) and (not main_process_only or sys.argv[1] == "0"):
            msg, kwargs = self.process(msg, kwargs)
            self.logger.log(level, msg, *args, **kwargs)


logging.basicConfig(filename="accelerate.log", level="INFO", format="%(funcName)s %(message)s")
log = MultiProcessAdapter(logging.getLogger("training"), {})


def train():
    for step in range(50):
        log.info("step %d", step)
        log.info("step %d of all", step, main_process_only=False)


train()
"""


def test_the_adapter_of_accelerate_logs_once_for_each_process(tmp_path, queue_dir):
    recipe = recipes.Recipe("transformers.md", tmp_path, queue_dir)
    recipe.write("accelerated.py", ACCELERATE)
    for process in ("0", "1"):
        recipe.call(["accelerated.py", process])
    text = (tmp_path / "accelerate.log").read_text()

    assert list(range(50)) == recipes.numbers(text, r"^train step (\d+)$")
    assert sorted([*range(50)] * 2) == recipes.numbers(text, r"^train step (\d+) of all$")


#: The classes and the function that `model.py` uses from the module that Triton provides.
PB_UTILS = """\
class Tensor:
    def __init__(self, name, values):
        self.name, self.values = name, values

    def as_numpy(self):
        return self.values


class InferenceResponse:
    def __init__(self, output_tensors):
        self.output_tensors = output_tensors


def get_input_tensor_by_name(request, name):
    return next(tensor for tensor in request if tensor.name == name)
"""

#: Starts instances as Triton does: each is a process that creates its model by name.
STUB = """\
import multiprocessing
import os


def instance(numbers):
    import model
    import triton_python_backend_utils as pb_utils

    class Values(list):
        def __mul__(self, factor):
            return Values(value * factor for value in self)

    one = model.TritonPythonModel()
    one.initialize({"model_name": "shop"})
    for number in numbers:
        answers = one.execute([[pb_utils.Tensor("order", Values([number]))]])
        assert answers[0].output_tensors[0].values == [2 * number]
    if numbers[0] == 0:
        one.finalize()
    else:
        # A stub that does not end in time is killed.
        os.kill(os.getpid(), 9)


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    stubs = [spawn.Process(target=instance, args=(range(start, start + 20),)) for start in (0, 20)]
    for stub in stubs:
        stub.start()
    for stub in stubs:
        stub.join()
    print([stub.exitcode for stub in stubs])
"""


def test_a_model_of_triton_logs_each_request_once(tmp_path, queue_dir):
    recipe = recipes.Recipe("triton.md", tmp_path, queue_dir)
    recipe.write("triton_python_backend_utils.py", PB_UTILS)
    recipe.write("stub.py", STUB)
    codes = recipe.call(["stub.py"])
    recipe.call(["-m", "logspool", "recover"])
    text = (tmp_path / "model.log").read_text()

    assert "[0, -9]\n" == codes
    assert list(range(40)) == recipes.numbers(text, r"^\d+ shop.model INFO order (\d+)$")
    assert 2 == text.count("model shop is ready")
    assert 1 == text.count("model is closed")


#: Calls the hook as Ray does: by its name, in a new process, before the first task.
RAY = """\
import importlib
import logging
import multiprocessing
import sys


def worker(hook, numbers):
    name, _, function = hook.rpartition(".")
    getattr(importlib.import_module(name), function)()
    for number in numbers:
        logging.getLogger("shop").info("order %d", number)
        logging.getLogger("ray.data").info("data %d", number)
    import logspool
    assert logspool.stats().installed


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=worker, args=(sys.argv[1], range(start, start + 20))) for start in (0, 20)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    sys.exit(max(abs(each.exitcode) for each in workers))
"""


@pytest.mark.parametrize("hook", ["cluster.set_up", "logspool.install"])
def test_a_worker_of_ray_is_set_up_by_its_hook(tmp_path, queue_dir, hook):
    recipe = recipes.Recipe("ray.md", tmp_path, queue_dir)
    recipe.change("cluster.py", "/tmp/ray-workers.log", str(tmp_path / "ray-workers.log"))
    recipe.write("driver.py", RAY)
    recipe.call(["driver.py", hook])
    if hook != "cluster.set_up":
        return
    text = (tmp_path / "ray-workers.log").read_text()

    assert list(range(40)) == recipes.numbers(text, r"\tINFO driver.py:\d+ -- order (\d+)$")
    assert list(range(40)) == recipes.numbers(text, r"\tINFO driver.py:\d+ -- data (\d+)$")


#: Spawns a worker for each part of the requests, as BentoML does; the worker imports the service.
BENTOML = """\
import logging.config
import multiprocessing


def api(method):
    return method


def service(workers):
    def decorate(cls):
        cls.workers = workers
        return cls

    return decorate


def _work(numbers):
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False, "loggers": {"bentoml": {"level": 20}}})
    import service as module

    for number in numbers:
        assert module.Shop().order(number) == 2 * number


def serve():
    import service as module

    spawn = multiprocessing.get_context("spawn")
    parts = [range(start, 40, module.Shop.workers) for start in range(module.Shop.workers)]
    processes = [spawn.Process(target=_work, args=(part,)) for part in parts]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
"""


def test_a_service_of_bentoml_logs_each_request_once(tmp_path, queue_dir):
    recipe = recipes.Recipe("bentoml.md", tmp_path, queue_dir)
    recipe.write("bentoml.py", BENTOML)
    recipe.write("main.py", "import bentoml\n\nif __name__ == '__main__':\n    bentoml.serve()\n")
    recipe.call(["main.py"])
    text = (tmp_path / "shop.log").read_text()

    assert list(range(40)) == recipes.numbers(text, r"^\d+ shop order (\d+)$")
    assert 2 == len(set(re.findall(r"^(\d+) shop", text, re.MULTILINE)))


def _varint(number):
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _field(number, value):
    """Return a field of a protocol buffer: a number or bytes."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _model():
    """Return an ONNX model that adds two vectors, and has an initializer that nothing uses."""
    shape = _field(1, _field(1, 2))
    vector = _field(1, _field(1, 1) + _field(2, shape))
    values = {name: _field(1, name.encode()) + _field(2, vector) for name in ("a", "b", "c")}
    node = _field(1, b"a") + _field(1, b"b") + _field(2, b"c") + _field(4, b"Add")
    unused = _field(1, 2) + _field(2, 1) + _field(8, b"unused") + _field(9, bytes(8))
    graph = _field(1, node) + _field(2, b"graph") + _field(5, unused)
    graph += _field(11, values["a"]) + _field(11, values["b"]) + _field(12, values["c"])
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _field(2, 17))


@needs("onnxruntime")
def test_lines_of_onnx_runtime_become_records(tmp_path, queue_dir):
    recipe = recipes.Recipe("onnxruntime.md", tmp_path, queue_dir)
    (tmp_path / "model.onnx").write_bytes(_model())
    plain = recipe.call(["infer.py"])
    text = (tmp_path / "infer.log").read_text()

    assert "True 0 0\n" == plain
    levels = re.findall(r"^(\w+) onnxruntime .*\[(\w):onnxruntime:", text, re.MULTILINE)
    assert {("WARNING", "W"), ("INFO", "I")} <= set(levels)
    assert set(levels) <= {("WARNING", "W"), ("INFO", "I"), ("DEBUG", "V")}
    assert 1 == len(re.findall(r"unused", text))
    assert "no session" not in text


#: Loads the configuration file and spawns processes that load it, too, as vLLM and SGLang do.
ENGINE = """\
import json
import logging.config
import multiprocessing
import os
import sys

VARIABLE = {variable!r}
NAME = {name!r}


def configure():
    with open(os.environ[VARIABLE]) as file:
        logging.config.dictConfig(json.load(file))


def engine(numbers):
    configure()
    log = logging.getLogger(NAME + ".engine")
    for number in numbers:
        log.info("order %d", number)
    log.debug("too low")


if __name__ == "__main__":
    configure()
    logging.getLogger(NAME).info("started")
    spawn = multiprocessing.get_context("spawn")
    engines = [spawn.Process(target=engine, args=(range(start, start + 20),)) for start in (0, 20)]
    for each in engines:
        each.start()
    for each in engines:
        each.join()
    sys.exit(max(abs(each.exitcode) for each in engines))
"""


@pytest.mark.parametrize(("name", "output"), [("vllm", "out.txt"), ("sglang", "sglang.log")])
def test_vllm_and_sglang_load_the_file_in_each_process(tmp_path, queue_dir, name, output):
    recipe = recipes.Recipe("vllm.md", tmp_path, queue_dir, PYTHONPATH=str(tmp_path))
    recipe.write("vllm/__init__.py", "")
    recipe.write("vllm/logging_utils.py", STAND_IN_OF_VLLM)
    recipe.write("sglang/__init__.py", "")
    engine = ENGINE.format(variable=f"{name.upper()}_LOGGING_CONFIG_PATH", name=name)
    recipe.write("sglang/launch_server.py", engine)
    recipe.write("bin/vllm", f"#!{sys.executable}\n{engine}")
    (tmp_path / "bin" / "vllm").chmod(0o755)
    preset = "python -m logspool preset vllm > " if name == "vllm" else "python -m logspool preset sglang"
    recipe.run(preset)
    start = "VLLM_LOGGING_CONFIG_PATH" if name == "vllm" else "SGLANG_LOGGING_CONFIG_PATH"
    with recipe.serving(start, has_port=False) as server:
        assert server.process.wait(recipes.SECONDS) == 0, server.text("err.txt")
    text = server.text(output)

    assert list(range(40)) == recipes.numbers(text)
    assert 1 == text.count("started")
    assert 41 == text.count("\n")
    assert "" == server.text("err.txt")
