"""What stands in for the native module in a copy of the package without one: `logspool/_native.py` collects it.

Logging then stays as the standard library does it, in the call. Promises that need the native core are refused.
"""
