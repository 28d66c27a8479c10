"""Property tests: text made with logspool installed is byte for byte what `%` and `logging.Formatter` make.

- `calls.py`: hypothesis strategies for messages, arguments and formatters.
- `worker.py`: a process of one side, logs what it is sent and answers with the bytes written.
- `workers.py`: the pair of workers.
"""
