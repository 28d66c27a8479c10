"""The records that a service gets from a program."""
