"""The two models that the server runs: an MLP classifier, and a recurrent language model that decodes in batches.

Both are made here with random weights, so nothing is downloaded. Their answers mean nothing; their
costs are real.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

INPUTS, CLASSES, CLASSIFIER_WIDTH = 256, 10, 512
VOCABULARY, HIDDEN = 4096, 256


def classifier() -> onnxruntime.InferenceSession:
    """Return a session of `x: [n, INPUTS] -> scores: [n, CLASSES]`."""
    weights = _weights(first=(INPUTS, CLASSIFIER_WIDTH), second=(CLASSIFIER_WIDTH, CLASSES))
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["wide"]),
        helper.make_node("Relu", ["wide"], ["active"]),
        helper.make_node("MatMul", ["active", "second"], ["scores"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", INPUTS])]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", CLASSES])]
    return _session(helper.make_graph(nodes, "classifier", inputs, outputs, weights))


def language_model() -> onnxruntime.InferenceSession:
    """Return a session of one decode step: `token: [n], state: [n, HIDDEN] -> next_token: [n], next_state`.

    The recurrent part is a minimal gated unit: one gate decides how much of the state is replaced.
    """
    weights = _weights(
        embedding=(VOCABULARY, HIDDEN), gate_of=(2 * HIDDEN, HIDDEN), value_of=(2 * HIDDEN, HIDDEN),
        head=(HIDDEN, VOCABULARY),
    )  # fmt: skip
    weights.append(numpy_helper.from_array(np.array(1, np.float32), "one"))
    nodes = [
        helper.make_node("Gather", ["embedding", "token"], ["embedded"]),
        helper.make_node("Concat", ["embedded", "state"], ["both"], axis=1),
        helper.make_node("MatMul", ["both", "gate_of"], ["gate_sum"]),
        helper.make_node("Sigmoid", ["gate_sum"], ["gate"]),
        helper.make_node("MatMul", ["both", "value_of"], ["value_sum"]),
        helper.make_node("Tanh", ["value_sum"], ["value"]),
        helper.make_node("Sub", ["one", "gate"], ["rest"]),
        helper.make_node("Mul", ["gate", "value"], ["new"]),
        helper.make_node("Mul", ["rest", "state"], ["old"]),
        helper.make_node("Add", ["new", "old"], ["next_state"]),
        helper.make_node("MatMul", ["next_state", "head"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["next_token"], axis=1, keepdims=0),
    ]
    inputs = [
        helper.make_tensor_value_info("token", TensorProto.INT64, ["n"]),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, ["n", HIDDEN]),
    ]
    outputs = [
        helper.make_tensor_value_info("next_token", TensorProto.INT64, ["n"]),
        helper.make_tensor_value_info("next_state", TensorProto.FLOAT, ["n", HIDDEN]),
    ]
    return _session(helper.make_graph(nodes, "language_model", inputs, outputs, weights))


def _weights(**shapes: tuple[int, int]) -> list[TensorProto]:
    random = np.random.default_rng(1)
    arrays = {
        name: random.standard_normal(shape, dtype=np.float32) / np.float32(shape[0] ** 0.5)
        for name, shape in shapes.items()
    }
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def _session(graph: object) -> onnxruntime.InferenceSession:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    # One thread: the server and the client share two cores with the logger.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
