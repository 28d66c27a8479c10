"""Loggers and sinks that their scope closes."""


def test_any_number_of_connections_can_have_a_logger_that_keeps_its_name(run_cpp, tmp_path):
    count = 20_000
    # Optimized at link time, as programs for users may be.
    assert "1 0 0\n0 0\n" == run_cpp("closing", tmp_path, count, flags=("-flto",))

    def lines(name):
        return (tmp_path / name).read_text().splitlines()

    lasting = {i: [f"lasting {i}"] for i in range(0, count, 1000)}
    opened = [line for i in range(count) for line in (f"connection {i} opens {i}", *lasting.get(i, []))]
    assert [*opened, "connection 19000 still here"] == lines("all")
    for file in range(0, 700, 100):
        assert [f"own {i}" for i in range(file, count, 700)] == lines(str(file))
