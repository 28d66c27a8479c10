"""What a service gets from a program."""
