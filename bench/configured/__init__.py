"""Configurations of programs, one file per kind; a new kind is one file and one word in this table."""

from configured import (
    calls,
    exceptions,
    filters,
    formatter_libraries,
    formatters,
    front_ends,
    outputs,
    record_libraries,
)
from configured.configuration import Configuration

KINDS = (outputs, calls, exceptions, filters, formatters, formatter_libraries, record_libraries, front_ends)

CONFIGURATIONS: dict[str, Configuration] = {
    configuration.name: configuration for kind in KINDS for configuration in kind.CONFIGURATIONS
}
