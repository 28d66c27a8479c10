"""The same scenario under stock logging and under `logspool.install()`: all output must be equal.

- `staging.py`: defines a scenario and the functions that scenarios use.
- `scenarios/`: the scenarios, one file per theme.
- `driver.py`: runs scenarios one after another in a child process, each with fresh logging state.
- `pairs.py`: runs the driver on both sides and splits the outputs by scenario.
- `test_differential.py`: compares.
"""
