"""`ThreadHandler` and deferred formatters: a thread with a queue of Python objects."""
