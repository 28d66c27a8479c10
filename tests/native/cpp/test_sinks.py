"""What sinks take and show: their level, and control characters in the texts of records."""


def test_sinks_have_levels_and_texts_cannot_forge_lines_on_a_console(run_cpp, tmp_path):
    console = run_cpp("sinks", tmp_path)

    def lines(name):
        return (tmp_path / name).read_text().split("\n")[:-1]

    # A level for each sink.
    assert ["debug", "warning", "error", "critical"] == lines("all")
    assert ["warning", "error", "critical"] == lines("warnings")
    assert ["error", "critical"] == lines("errors")
    # A logger that is found keeps its level.
    assert ["true 40 false", 'there is no logger "other"'] == lines("found")
    # Names and formats may be a std::string.
    assert ["connection 7 true"] == lines("made")
    # Control characters of the format stay; control characters of a record are escaped.
    bold = "\x1b[1mINFO\x1b[0m "
    forged = ["a\\nINFO forged 7", "\\u202e"] * 2
    assert [bold + text for text in ["plain \t 1", *forged]] == [line for line in console.split("\n") if bold in line]
    assert [
        "plain \t 1|\a",
        *['a\\nINFO forged 7|\ak="\\u001b[2J"', "   \\u202e|\a"] * 2,
    ] == [line for line in console.split("\n") if "\a" in line]
    kept = ["plain \t 1", *["a", "INFO forged 7", "\u202e"] * 2]
    assert kept == lines("kept")
    assert kept == [line for line in console.split("\n")[:-1] if bold not in line and "\a" not in line]
    assert ["plain \t 1", *forged] == lines("escaped")
    assert '{"m":"a\\nINFO forged 7"}' == lines("json")[1]
