"""The cost of logging for an inference server: see `__main__`."""
