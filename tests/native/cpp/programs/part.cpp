// The extension module `part`, which logs in C++ for the tests of mixed processes.
#include <logspool_python.hpp>

#include <string>
#include <thread>
#include <vector>

static logspool::logger log_of_part;
static std::vector<std::thread> threads;

/// set_up(path): opens the file; if that fails, raises the message of the header's `setup_error`.
static PyObject *set_up(PyObject *, PyObject *path) {
    try {
        const logspool::sink file(PyUnicode_AsUTF8(path), R"({"template": "%(message)s"})");
        log_of_part = logspool::logger("part", logspool::level::info, file);
    } catch (const logspool::setup_error &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
    Py_RETURN_NONE;
}

static PyObject *log_one(PyObject *, PyObject *number) {
    LOGSPOOL_INFO(log_of_part, "c++ {}", PyLong_AsLong(number));
    Py_RETURN_NONE;
}

/// start(count): two threads without a thread state log `count` records each.
static PyObject *start(PyObject *, PyObject *number) {
    const long count = PyLong_AsLong(number);
    for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([thread, count] {
            for (long i = 0; i < count; ++i) {
                LOGSPOOL_INFO(log_of_part, "thread{} {}", thread, i);
            }
        });
    }
    Py_RETURN_NONE;
}

static PyObject *join(PyObject *, PyObject *) {
    Py_BEGIN_ALLOW_THREADS;
    for (std::thread &thread : threads) {
        thread.join();
    }
    threads.clear();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/// use(major, missing bytes): gives the header the same table with another version, and returns the header's answer.
static PyObject *use(PyObject *, PyObject *arguments) {
    unsigned major = 0;
    unsigned missing = 0;
    if (!PyArg_ParseTuple(arguments, "II", &major, &missing)) {
        return nullptr;
    }
    static logspool_api other;
    other = *static_cast<const logspool_api *>(PyCapsule_Import("logspool._native._C_API", 0));
    other.major = major;
    other.size -= missing;
    logspool::detail::table = nullptr;
    return PyBool_FromLong(logspool::use(&other));
}

static PyMethodDef functions[] = {
    {"set_up", set_up, METH_O, nullptr},  {"log_one", log_one, METH_O, nullptr}, {"start", start, METH_O, nullptr},
    {"join", join, METH_NOARGS, nullptr}, {"use", use, METH_VARARGS, nullptr},   {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "part", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr,
};

PyMODINIT_FUNC PyInit_part() {
    if (!logspool::use_python_core()) {
        return nullptr;
    }
    return PyModule_Create(&module);
}
