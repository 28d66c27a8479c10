"""Libraries that reach into `logging`, the real packages: the same program stock and installed, the same output."""
