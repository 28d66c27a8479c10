/// \file
/// logspool for extension modules of Python: `logspool.hpp`, with every call through the core of the Python package.
/// Link nothing of logspool. Include this header instead of `logspool.hpp` in each file of the module, and call
/// `logspool::use_python_core()` before anything else is logged, best where the module is made:
///
///     PyMODINIT_FUNC PyInit_shop() {
///         if (!logspool::use_python_core()) {
///             return nullptr; // ImportError is set, and says why.
///         }
///         return PyModule_Create(&module);
///     }
///
/// Python and the module then have one queue: lines in one file are in one order, whichever of them logs first.
/// A call that logs needs no thread state and no GIL, so any thread of the module may log.
#ifndef LOGSPOOL_PYTHON_HPP
#define LOGSPOOL_PYTHON_HPP

#include <Python.h>

#if defined(LOGSPOOL_API_HPP) && !defined(LOGSPOOL_NO_LINK)
#error "include logspool_python.hpp before logspool.hpp, or define LOGSPOOL_NO_LINK for the whole module"
#endif
#ifndef LOGSPOOL_NO_LINK
#define LOGSPOOL_NO_LINK
#endif

#include "logspool.hpp"

namespace logspool {

/// Imports the package `logspool` and makes all calls go through its core. Call it with the GIL. False: the package is
/// missing, or has another major version of the interface; an ImportError with the reason is set.
inline bool use_python_core() {
    const void *const table = PyCapsule_Import("logspool._native._C_API", 0);
    if (table == nullptr) {
        return false;
    }
    if (!use(static_cast<const logspool_api *>(table))) {
        PyErr_SetString(PyExc_ImportError, last_error());
        return false;
    }
    return true;
}

} // namespace logspool

#endif
