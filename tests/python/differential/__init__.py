"""The same scenario under stock logging and under `logspool.install()`: all output must be equal.

- `staging.py`: what a scenario is and the words it may use.
- `scenarios/`: the scenarios, one file per theme.
- `driver.py`: runs scenarios one after another in a child process, each with fresh logging state.
- `pairs.py`: runs the driver on both sides and takes the outputs apart.
- `test_differential.py`: compares.
"""
