"""logspool's own handlers and formatters, their sinks and their addresses."""
