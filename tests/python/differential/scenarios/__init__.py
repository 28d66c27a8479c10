"""The scenarios. A new theme is one module here and one name in the list."""

import importlib

THEMES = (
    "behaviours",
    "behaviours_beyond",
    "keywords",
    "reports",
    "invalidation",
    "clock",
    "assertions",
    "console",
    "visibility",
    "rotation",
    "configuration",
    "concurrency",
    "queueing",
    "records",
    "record_factories",
    "adapters",
    "formatters",
)


def all_scenarios():
    """Import every theme and return the scenarios that this Python version can run, by id."""
    from differential import staging

    for theme in THEMES:
        importlib.import_module(f"differential.scenarios.{theme}")
    return staging.registered()
