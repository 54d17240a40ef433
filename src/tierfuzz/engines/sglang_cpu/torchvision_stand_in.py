"""Stands in for torchvision in the engine's environment: every name can be imported, none does anything.

The engine imports torchvision for pictures, which no request here has; the real one costs a gigabyte.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGE = "torchvision"
__version__ = "0"
__path__: list[str] = []


class _Nothing(type):
    """Type of the class that every name is: it can be called, subclassed and asked for attributes."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        del args, kwargs
        return cls


class Nothing(metaclass=_Nothing):
    """What every name is."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Nothing


class _Finder(MetaPathFinder, Loader):
    """Finds every submodule."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        ours = fullname.startswith(f"{PACKAGE}.")
        return ModuleSpec(fullname, self, is_package=True) if ours else None

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__getattr__"] = __getattr__


if __name__ == PACKAGE:
    sys.meta_path.append(_Finder())
