"""Tests of the suite itself: a difference planted on purpose must turn it red. They need no built package."""
