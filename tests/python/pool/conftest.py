"""What the tests of the pool share."""

import pytest


@pytest.fixture
def pool():
    """Give a pool of two workers."""
    from logspool.pool import Pool

    with Pool(2) as made:
        yield made
