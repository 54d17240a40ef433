"""The modelled forward pass: page contents are checksums, and outputs follow from the pages used.

A page's content is a checksum of everything before it and its own tokens, so a page of another prefix
changes every answer that uses it. Integer hashing is deterministic for one Python version.
"""

from __future__ import annotations

from tierfuzz.model.pools import Pool
from tierfuzz.model.request import Active

VOCABULARY = 1000


def mix(left: int, right: object) -> int:
    """A checksum of two values."""
    return hash((left, right))


def read_prefix(active: Active, pool: Pool, page_size: int) -> None:
    """Start from the cached prefix: read the contents of the slots that hold it."""
    digest = 0
    for slot in active.slots[: active.prefix // page_size]:
        digest = mix(digest, pool.content[slot])
    active.digest = digest


def write_pages(active: Active, pool: Pool, start: int, stop: int, page_size: int) -> None:
    """Compute tokens start..stop-1: every page that becomes whole gets its content."""
    for page in range(start // page_size, stop // page_size):
        content = mix(active.digest, active.sequence.pages[page])
        pool.content[active.slots[page]] = content
        active.digest = mix(active.digest, content)


def sample(active: Active, length: int, page_size: int) -> int:
    """The output token after `length` tokens: 1..VOCABULARY, or the recorded one."""
    index = len(active.sampled)
    tail = tuple(active.sequence.tokens[length - length % page_size : length])
    state = mix(active.digest, tail)
    active.state = state if active.state is None else active.state
    forced = active.request.forced_outputs
    if forced is not None and index < len(forced):
        return forced[index]
    return 1 + state % VOCABULARY
