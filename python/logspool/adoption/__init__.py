"""What logspool adopts of the program: loggers, handlers, formatters and the texts of records."""
