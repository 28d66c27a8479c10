"""Frameworks with logspool in them: recipes of the pages, run with the real packages."""
