"""What logging costs an inference server: see `__main__`."""
