"""The example of C++ compiles and logs what it says."""

import re

import pytest
from toolchain import COMPILERS, ROOT


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_shop_logs(run_cpp, tmp_path, compiler):
    printed = run_cpp(ROOT / "examples/cpp/shop.cpp", compiler=compiler)

    lines = [re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (.*)", line)[1] for line in printed.splitlines()]
    assert [
        "DEBUG shop the till has 42 coins",
        "ERROR shop the till is empty",
        "INFO shop 0 records were dropped",
    ] == lines[-3:]
    orders = [
        f'INFO shop order ({c * 10 + n}, "apple", {2.5 * (n + 1):g}) is paid for {2.5 * (n + 1):.2f}'
        for c in (1, 2)
        for n in range(3)
    ]
    assert sorted([*orders, "WARNING shop 10 apples are left"]) == sorted(lines[:-3])
