// An extension module that logs beside Python. It links nothing of logspool:
// g++ -std=c++20 -O2 -shared -fPIC shop_native.cpp $(pkg-config --cflags logspool) $(python3-config --includes)
//     -o shop_native.so
#include <logspool_python.hpp>

static logspool::logger log_of_till;

/// open_till(path): C++ logs into this file from here on.
static PyObject *open_till(PyObject *, PyObject *path) {
    const char *const text = PyUnicode_AsUTF8(path);
    if (text == nullptr) {
        return nullptr;
    }
    try {
        const logspool::sink file(text, R"({"template": "%(asctime)s %(levelname)s %(name)s %(message)s"})");
        log_of_till = logspool::logger("shop.till", logspool::level::info, file);
    } catch (const logspool::setup_error &error) {
        PyErr_SetString(PyExc_OSError, error.what());
        return nullptr;
    }
    Py_RETURN_NONE;
}

/// sell(what, count): logs in C++.
static PyObject *sell(PyObject *, PyObject *arguments) {
    const char *what = nullptr;
    int count = 0;
    if (!PyArg_ParseTuple(arguments, "si", &what, &count)) {
        return nullptr;
    }
    LOGSPOOL_INFO(log_of_till, "sold {} {}", count, what);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"open_till", open_till, METH_O, nullptr},
    {"sell", sell, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "shop_native", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr,
};

PyMODINIT_FUNC PyInit_shop_native() {
    if (!logspool::use_python_core()) {
        return nullptr; // ImportError says why.
    }
    return PyModule_Create(&module);
}
