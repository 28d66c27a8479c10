"""Replaces the native module in a copy of the package without it: `logspool/_native.py` collects the names.

Logging then stays as the standard library does it, in the call. Promises that need the native core are refused.
"""
