"""Templates and arguments that must not compile, with the reason and the byte that the compiler shows."""

import re
import subprocess

import pytest
from toolchain import COMPILERS, INCLUDES, ROOT

# The template, the arguments, the byte, the reason.
WRONG = [
    ("n {", "1", 2, "`{` without `}`; write `{{` for a brace"),
    ("}", "1", 0, "a single `}`; write `}}` for a brace"),
    ("n {} {}", "1", 6, "there is no argument for this placeholder"),
    ("n {1}", "1", 3, "there is no argument for this placeholder"),
    ("n {}", "", 3, "there is no argument for this placeholder"),
    ("n {}", 'logspool::kv("k", 1)', 3, "there is no argument for this placeholder"),
    ("n {x}", "1", 3, 'there is no key-value with this name; write "name"_kv = value'),
    ("n {y}", '"x"_kv = 1', 3, 'there is no key-value with this name; write "name"_kv = value'),
    ("{0} {}", "1, 2", 5, "automatic numbering cannot follow numbers; give each `{}` a number"),
    ("{} {0}", "1, 2", 4, "numbers cannot follow automatic numbering; give each `{}` a number"),
    ("{00}", "1", 1, "the number of an argument has no leading zeros"),
    ("{99999999999}", "1", 1, "the number is too large"),
    ("{!}", "1", 1, "neither a number nor a name begins here"),
    ("{0x}", "1", 2, "`:` or `}` is expected here"),
    ("n {:L}", "1", 4, "`L` is not supported: lines do not depend on the locale"),
    ("n {:%Y}", "1", 4, "this is not a type of {fmt} that logspool shows"),
    ("n {:dd}", "1", 5, "a type or `}` is expected here"),
    ("n {:.}", "1.0", 5, "a precision is expected after `.`"),
    ("n {:2000}", "1", 4, "the width is above the limit of 1024"),
    ("n {:.2000f}", "1.0", 5, "the precision is above the limit of 1024"),
    ("n {:{}}", "1, 2.0", 3, "the argument of the width is not an integer"),
    ("n {:.{}}", '1.0, "x"', 3, "the argument of the precision is not an integer"),
    ("n {:{0}", "1, 2", 5, "numbers cannot follow automatic numbering; give each `{}` a number"),
    ("n {:d}", '"text"', 3, "the type does not fit text"),
    ("n\\0 {}", "1", 1, "a NUL would end the template; pass it as an argument"),
    ("n {:d}", "std::string()", 3, "the type does not fit text"),
    ("n {:s}", "1", 3, "the type does not fit an integer"),
    ("n {:f}", "1", 3, "the type does not fit an integer"),
    ("n {:d}", "1.0", 3, "the type does not fit a floating-point number"),
    ("n {:x}", "1.0F", 3, "the type does not fit a floating-point number"),
    ("n {:f}", "true", 3, "the type does not fit a bool"),
    ("n {:f}", "'c'", 3, "the type does not fit a character"),
    ("n {:d}", "nullptr", 3, "the type does not fit an address"),
    ("n {:d}", "pair{}", 3, "a value of several fields has no type"),
    *(
        (f"n {{:{spec}}}", "1.0L", 3, "a long double is shown with all its digits; cast it to double for this format")
        for spec in (".3", "f", "+", "09")
    ),
    ("n {:.2}", "1", 3, "a precision is for floating-point numbers and text"),
    ("n {:+}", "1U", 3, "a sign is for signed numbers"),
    ("n {:+}", "true", 3, "a sign is for signed numbers"),
    ("n {:#}", '"text"', 3, "sign, `#` and `0` are for numbers"),
    ("n {:05}", "nullptr", 3, "sign, `#` and `0` are for numbers"),
    ("n {:05}", "'c'", 3, "sign, `#` and `0` are for numbers, not for a character"),
    ("n {x:d}", '"x"_kv = "text"', 3, "the type does not fit text"),
    ("é {:d}", '"text"', 4, "the type does not fit text"),
    ("x" * 200 + "{:d}", '"text"', "after 128", "the type does not fit text"),
]

PRELUDE = """
#include <logspool.hpp>
using namespace logspool::literals;
struct pair {};
template <class Visitor> void logspool_fields(const pair &, Visitor &visitor) { visitor("a", 1); }
"""


def compile_alone(tmp_path, compiler, source, standard="c++20"):
    path = tmp_path / "wrong.cpp"
    path.write_text(source)
    limit = "-ferror-limit=0" if "clang" in compiler else "-fmax-errors=0"
    command = [compiler, f"-std={standard}", *INCLUDES, limit, "-fsyntax-only", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def refusals(compiler, errors):
    """Return {line of wrong.cpp: (byte, reason)} of the errors of a compiler."""
    found = {}
    headers = (ROOT / "bindings/cpp/logspool/format.hpp").read_text().splitlines()
    # clang shows the notes of an error after it, gcc before it.
    parts = re.split(
        r"(?=^\S*wrong\.cpp:\d+:\d+: error)" if "clang" in compiler else r"(?<=declared here\n)", errors, flags=re.M
    )
    for part in parts:
        line = re.search(r"wrong\.cpp:(\d+):\d+:", part)
        byte = re.search(r"template_is_wrong_(at|after)_byte(?:<(\d+)UL>|\(\) \[with .*?Byte = (\d+)\])", part)
        place = re.findall(r"format\.hpp:(\d+):", part)
        if not line or not byte:
            continue
        texts = [
            text for number in place for text in re.findall(r'refuse<("(?:[^"\\]|\\.)*")>', headers[int(number) - 1])
        ]
        texts += re.findall(r'fixed_text<\d+(?:UL)?>\{("(?:[^"\\]|\\.)*")', part)
        # The reasons of an amount are arguments of its check.
        texts += [
            text
            for number in place
            for text in re.findall(r'<("the (?:width|prec|arg)[^"]*")>', headers[int(number) - 1])
        ]
        number = byte[2] or byte[3]
        found[int(line[1])] = (number if byte[1] == "at" else f"after {number}", {eval(text) for text in texts})
    return found


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_older_standard_is_refused_with_one_sentence(tmp_path, compiler, standard):
    done = compile_alone(tmp_path, compiler, "#include <logspool.hpp>\nint main() {}\n", standard)

    assert done.returncode != 0
    assert done.stderr.count("error:") == 1, done.stderr
    assert "compile with -std=c++20; with CMake: target_compile_features(program PRIVATE cxx_std_20)" in done.stderr


@pytest.mark.parametrize("style", ["macro", "function"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_invalid_templates_are_refused_with_reason_and_byte(tmp_path, compiler, style):
    first = PRELUDE.count("\n") + 1
    lines = []
    for index, (template, arguments, _, _) in enumerate(WRONG):
        call = "LOGSPOOL_INFO" if style == "macro" else "logspool::info"
        arguments = f", {arguments}" if arguments else ""
        lines.append(f'void f{index}(const logspool::logger &log) {{ {call}(log, "{template}"{arguments}); }}')
    done = compile_alone(tmp_path, compiler, PRELUDE + "\n".join(lines))
    found = refusals(compiler, done.stderr)

    assert done.returncode != 0
    for index, (template, arguments, byte, reason) in enumerate(WRONG):
        assert first + index in found, (template, arguments)
        shown, reasons = found[first + index]
        assert (str(byte), True) == (shown, reason in reasons), (template, arguments, shown, reasons)


UNFIT = {
    "no_codec{}": "logspool cannot log this type: specialise logspool::codec",
    "u'x'": "logspool shows texts in UTF-8",
    "L'x'": "logspool shows texts in UTF-8",
    "&function": "logspool cannot log this type",
    "[] {}": "logspool cannot log this type",
    "itself{}": "the codec of a type must return another type",
    'logspool::kv("k", logspool::kv("x", 1))': "the value of a key cannot be a key-value",
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("argument", UNFIT)
def test_types_that_cannot_be_logged_are_refused_with_a_fix(tmp_path, compiler, argument):
    source = f"""{PRELUDE}
    struct no_codec {{}};
    struct itself {{}};
    void function();
    template <> struct logspool::codec<itself> {{ static itself encode(const itself &value) {{ return value; }} }};
    void log_it(const logspool::logger &log) {{ LOGSPOOL_INFO(log, "x", {argument}); }}
    """
    done = compile_alone(tmp_path, compiler, source)

    assert done.returncode != 0
    assert UNFIT[argument] in done.stderr


#: In containers, too.
UNSERVED = ["no_codec{}", "std::any(1)", "std::function<void()>()", "std::mutex()", "std::vector<no_codec>(1)"]
UNSERVED += ["std::stack<no_codec>()", "bag()", "std::make_pair(1, no_codec{})", "std::optional<std::any>()"]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("argument", UNSERVED)
def test_a_type_that_nothing_serves_is_one_error(tmp_path, compiler, argument):
    headers = "".join(f"#include <{name}>\n" for name in ("any", "functional", "mutex", "optional", "stack", "vector"))
    source = f"""{headers}{PRELUDE}
    struct no_codec {{}};
    class bag {{
      public:
        using container_type = std::vector<int>;
        bool empty() const {{ return c.empty(); }}
      private:
        container_type c;
    }};
    void log_it(const logspool::logger &log) {{ LOGSPOOL_INFO(log, "{{}}", {argument}); }}
    """
    done = compile_alone(tmp_path, compiler, source)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]

    assert done.returncode != 0
    assert len(errors) == 1, errors
    assert "specialise logspool::codec for it" in errors[0]


@pytest.mark.parametrize(
    "call",
    [
        'LOGSPOOL_TRACE(log, "{:d}", "text")',
        'logspool::kv("x", 1), LOGSPOOL_INFO(log, std::string("{}"), 1)',
        'LOGSPOOL_TEXT(log, logspool::level::info, "text", 1)',
        "logspool::log(log, 20, variable, 1)",
    ],
)
def test_invalid_calls_do_not_compile(tmp_path, call):
    source = f"""#define LOGSPOOL_ACTIVE_LEVEL 20
    {PRELUDE}
    void log_it(const logspool::logger &log, const char *variable) {{ (void)variable; {call}; }}
    """
    assert compile_alone(tmp_path, "g++", source).returncode != 0


def test_valid_calls_compile(tmp_path):
    source = f"""{PRELUDE}
    void log_it(const logspool::logger &log) {{
        LOGSPOOL_INFO(log, "{{:%H:{{}}}} {{:d}} {{x:>5}}", logspool::text("12"), 1, "x"_kv = "text");
        if (log) LOGSPOOL_INFO(log, "a"); else LOGSPOOL_INFO(log, "b");
    }}
    """
    done = compile_alone(tmp_path, "g++", source)
    assert (0, "") == (done.returncode, done.stderr)
