"""The registry of planted faults, and faults of a user's own file."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

from tierfuzz.errors import UsageError
from tierfuzz.faults import (
    accounting,
    announcement,
    backup,
    canary,
    hosting,
    lifecycle,
    lookup,
    prefetch,
    publisher,
    ranks,
    residency,
    router,
    storage,
    subscriber,
    tree,
    wire,
)
from tierfuzz.model.faults import Fault

_MODULES = (
    canary,
    tree,
    backup,
    hosting,
    lookup,
    publisher,
    residency,
    announcement,
    accounting,
    lifecycle,
    storage,
    prefetch,
    ranks,
    wire,
    subscriber,
    router,
)
_CLASSES: tuple[type[Fault], ...] = tuple(
    value
    for module in _MODULES
    for value in vars(module).values()
    if inspect.isclass(value) and issubclass(value, Fault) and not value.__name__.startswith("_")
    if value is not Fault
)


def fault_name(fault: type[Fault]) -> str:
    """The name on the command line: the class name in kebab case."""
    words = "".join(f"-{c.lower()}" if c.isupper() else c for c in fault.__name__)
    return words.lstrip("-")


FAULTS: dict[str, type[Fault]] = {fault_name(fault): fault for fault in _CLASSES}


def make_fault(name: str) -> Fault:
    """A fault by name or `file.py:Class`; UsageError says what was expected."""
    if name in FAULTS:
        return FAULTS[name]()
    path, _, class_name = name.rpartition(":")
    if not path:
        raise UsageError(
            f"unknown fault {name!r}; expected file.py:Class or one of: {', '.join(sorted(FAULTS))}"
        )
    return _load(Path(path), class_name)


def _load(path: Path, class_name: str) -> Fault:
    if not path.is_file():
        raise UsageError(f"fault file {path} does not exist; expected file.py:Class")
    spec = importlib.util.spec_from_file_location(f"tierfuzz_fault_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, class_name, None)
    if not (inspect.isclass(found) and issubclass(found, Fault)):
        raise UsageError(f"{path} has no class {class_name} derived from tierfuzz.model.faults.Fault")
    return found()
