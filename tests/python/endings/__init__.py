"""How a program can end: where stock `FileHandler` is complete, the file is complete here."""
