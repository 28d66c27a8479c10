"""What the tests of logspool share: running programs on both sides, reading stats, comparing output."""
