"""The table of changes that must be seen at the next call; `scenarios/invalidation.py` plays it."""
