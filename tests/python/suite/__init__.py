"""Shared code of the tests: running programs on both sides, reading stats, comparing output."""
