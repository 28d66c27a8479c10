"""Property tests: with logspool installed, text equals the output of `%` and `logging.Formatter` byte for byte.

- `calls.py`: hypothesis strategies for messages, arguments and formatters.
- `worker.py`: a process of one side, logs the calls that it receives and answers with the bytes written.
- `workers.py`: the pair of workers.
"""
