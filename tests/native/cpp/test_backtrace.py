"""Records that are kept until a serious one comes: by threads, forked children, signal handlers and plugins."""

import pytest
from toolchain import COMPILERS, INCLUDES, PROGRAMS, STRICT, compile_silently


def lines_of(path):
    """Return pairs of thread and message."""
    return [tuple(line.split(" ", 1)) for line in path.read_text().splitlines()]


def test_a_thread_logs_only_the_records_that_it_kept(run_cpp, tmp_path):
    main = run_cpp("backtrace", tmp_path / "a.log", "threads").strip()

    lines = lines_of(tmp_path / "a.log")
    wanted = ["of thread 50", "error of thread 50", "of thread 150", "error of thread 150", "of main", "error of main"]
    assert wanted == [message for _, message in lines]
    assert [main, main] == [thread for thread, _ in lines[4:]]
    assert lines[0][0] == lines[1][0] != main


def test_forked_children_keep_records_while_other_threads_do(run_cpp, tmp_path):
    assert "" == run_cpp("backtrace", tmp_path / "a.log", "forks")

    wanted = [text for i in range(30) for text in (f"of child {i}", f"error of child {i}")]
    assert sorted(wanted) == sorted(message for _, message in lines_of(tmp_path / "a.log"))


def test_a_signal_handler_can_interrupt_a_call_that_keeps_a_record(run_cpp, tmp_path):
    run_cpp("backtrace", tmp_path / "a.log", "handlers")

    messages = [message for _, message in lines_of(tmp_path / "a.log")]
    kept = [int(message.split()[1]) for message in messages if message.startswith("kept")]
    assert ["kept 299999 " + "x" * 499, "end"] == messages[-2:]
    assert sorted(set(kept)) == kept
    assert messages.count("error of the handler") > 1


@pytest.mark.parametrize("compiler", COMPILERS)
def test_records_kept_by_a_plugin_are_logged_after_it_is_unloaded(run_cpp, library, tmp_path, compiler):
    plugin = tmp_path / "plugin.so"
    # Without these flags the library that first has a symbol of a header stays in the process.
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", *(["-fno-gnu-unique"] if compiler == "g++" else [])]
    source = [PROGRAMS / "backtrace.cpp", "-DPLUGIN", "-o", plugin, f"-L{library}", "-llogspool"]
    compile_silently(compiler, *STRICT, *INCLUDES, *flags, *source)

    assert "unloaded\n" == run_cpp("backtrace", tmp_path / "a.log", plugin, compiler=compiler, flags=("-ldl",))
    wanted = [f"plugin {number} {'p' * 400}" for number in (1, 2)]
    assert [*wanted, "after the plugin"] == [message for _, message in lines_of(tmp_path / "a.log")]
