"""The parts of the pool's comparison, one file each; a new part is one file and one word in this table."""

from parts import Part
from pools import compress, exclusion, idle, jobs, memory, scaling, semaphores, streams, timers

PARTS: dict[str, Part] = {
    module.PART.name: module.PART
    for module in (jobs, streams, semaphores, idle, compress, scaling, timers, memory, exclusion)
}
