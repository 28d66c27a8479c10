"""The parts of the service's comparison, one file each; a new part is one file and one word in this table."""

from parts import Part
from services import bombs, datagram, fresh, memory, native, once, pickles, questions, readers, stdlib, syslog

PARTS: dict[str, Part] = {
    module.PART.name: module.PART
    for module in (native, once, stdlib, datagram, pickles, syslog, fresh, questions, readers, memory, bombs)
}
