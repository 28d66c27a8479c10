"""The example of C++ compiles and logs the lines that it promises."""

import re
import subprocess

import pytest
from toolchain import COMPILERS, ROOT


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_shop_example_logs_every_line(run_cpp, tmp_path, compiler):
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


def test_the_program_on_the_page_works(cpp, tmp_path):
    page = (ROOT / "docs/how-to/log-from-cpp.md").read_text()
    source = tmp_path / "program.cpp"
    source.write_text(re.search(r"^```cpp\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1])
    subprocess.run([cpp(str(source))], cwd=tmp_path, check=True, timeout=60)

    lines = [line.split(" ", 2)[2] for line in (tmp_path / "app.log").read_text().splitlines()]
    assert [
        "INFO shop user ada did 3 in 0.250 ms",
        "WARNING shop order 17 is late",
        "ERROR shop a function has the place of its call too: 42",
    ] == lines
