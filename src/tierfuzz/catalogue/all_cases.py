"""Every case of the catalogue, by component."""

from __future__ import annotations

from tierfuzz.catalogue import (
    accounting,
    engine_tree,
    lifecycle,
    publisher,
    ranks,
    router,
    router_accounting,
    subscriber,
)
from tierfuzz.catalogue.case import Case
from tierfuzz.errors import UsageError

_MODULES = (engine_tree, publisher, ranks, subscriber, router, accounting, router_accounting, lifecycle)
CASES: tuple[Case, ...] = tuple(case for module in _MODULES for case in module.CASES)
_BY_ID = {case.id: case for case in CASES}


def case(id_: str) -> Case:
    """The case of an id like T01; UsageError names the known ones."""
    if id_ not in _BY_ID:
        raise UsageError(f"unknown case {id_!r}; expected one of: {', '.join(sorted(_BY_ID))}")
    return _BY_ID[id_]
