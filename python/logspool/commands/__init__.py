"""The commands of `python -m logspool`."""
