"""ARCHITECTURE.md holds: imports point down, every module has its layer, the pure layer stays pure."""

from __future__ import annotations

import ast
import fnmatch
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 250
IMPURE = {"httpx", "zmq", "starlette", "uvicorn", "subprocess", "socket", "threading", "asyncio"}
IMPURE |= {"time", "random"}

Layers = list[tuple[str, list[str]]]


def read_layers() -> Layers:
    """The table of ARCHITECTURE.md, top layer first: (layer, patterns of module names)."""
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("## Layers")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("|")][2:]
    return [(name.strip(), re.findall(r"`([^`]+)`", patterns)) for name, patterns in rows]


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    mapped = [(ROOT / name, f"tierfuzz.{name}") for name in ("strategies", "known")]
    for folder, prefix in ((ROOT / "src", ""), *mapped):
        for path in sorted(folder.rglob("*.py")):
            parts = [prefix] if prefix else []
            parts += path.relative_to(folder).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


LAYERS = read_layers()
MODULES = modules()


def layer_of(module: str, layers: Layers) -> int | None:
    """Number of the module's layer, 0 on top; None when it is in none or in several."""
    head = module.split(".")[1]
    hits = [i for i, (_, names) in enumerate(layers) if any(fnmatch.fnmatch(head, n) for n in names)]
    return hits[0] if len(hits) == 1 else None


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Dotted names that the code imports when it runs, inside functions too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imports_of(ast.Module([other], []))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import; expected an absolute one"
            # `from tierfuzz import errors` names the module in the alias
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imports_of(node)


def wrong_imports(module: str, source: str, layers: Layers) -> list[str]:
    """What the module imports although its layer may not."""
    mine = layer_of(module, layers)
    assert mine is not None
    wrong = []
    for name in imports_of(ast.parse(source)):
        head, *rest = name.split(".")
        if head == "tierfuzz" and rest:
            theirs = layer_of(name, layers)
            if theirs is not None and theirs < mine:
                wrong.append(f"{name} is in the layer {layers[theirs][0]!r} above {layers[mine][0]!r}")
        if (head == "time" or (head in IMPURE and mine == len(layers) - 1)) and module != "tierfuzz.clock":
            wrong.append(f"{name} may not be imported here")
    return wrong


def test_the_table_names_five_layers_without_overlap() -> None:
    names = [name for _, patterns in LAYERS for name in patterns]
    assert [layer for layer, _ in LAYERS] == ["people", "driving", "running", "processes", "pure"]
    assert len(names) == len(set(names))


def test_the_modules_are_found() -> None:
    assert {"tierfuzz", "tierfuzz.errors", "tierfuzz.model.cache", "tierfuzz.strategies"} <= set(MODULES)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "tierfuzz"])
def test_imports_point_down(module: str) -> None:
    assert layer_of(module, LAYERS) is not None, f"{module} is in no layer, or in two, of ARCHITECTURE.md"
    assert wrong_imports(module, MODULES[module].read_text(), LAYERS) == []


def test_the_package_root_imports_nothing() -> None:
    assert [n for n in imports_of(ast.parse(MODULES["tierfuzz"].read_text())) if "__future__" not in n] == []


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_short_and_says_what_it_is(module: str) -> None:
    source = MODULES[module].read_text()
    docstring = ast.get_docstring(ast.parse(source)) or ""
    first, _, rest = docstring.partition("\n")
    assert first.endswith("."), f"{MODULES[module]}: expected a docstring that starts with one line"
    assert rest == "" or rest.startswith("\n"), f"{MODULES[module]}: expected a blank line after the first"
    lines = source.count("\n")
    assert lines <= LONGEST, f"{MODULES[module]}: more than {LONGEST} lines; split it"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tierfuzz.model.cache", "import tierfuzz.worker.http"),
        ("tierfuzz.model.cache", "from tierfuzz import sim"),
        ("tierfuzz.model.cache", "from tierfuzz.sim.app import build"),
        ("tierfuzz.ledger", "def f() -> None:\n    from tierfuzz.fleet import Fleet"),
        ("tierfuzz.ledger", "if True:\n    import random"),
        ("tierfuzz.ledger", "try:\n    import zmq.asyncio\nexcept ImportError:\n    pass"),
        ("tierfuzz.fleet", "from time import sleep"),
        ("tierfuzz.worker.http", "import tierfuzz.strategies.prompts"),
        ("tierfuzz.strategies.prompts", "from tierfuzz.campaign import run_campaign"),
        ("tierfuzz.machine_rules", "import tierfuzz.cli"),
        ("tierfuzz.model.x", "if TYPE_CHECKING:\n    pass\nelse:\n    import socket"),
    ],
)
def test_a_wrong_import_is_noticed(module: str, source: str) -> None:
    assert len(wrong_imports(module, source, LAYERS)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tierfuzz.clock", "import time"),
        ("tierfuzz.sim.loop", "import random"),
        ("tierfuzz.ledger", "from tierfuzz import events"),
        ("tierfuzz.ledger", "if TYPE_CHECKING:\n    from random import Random"),
        ("tierfuzz.cli.run", "from tierfuzz.campaign import run_campaign"),
        ("tierfuzz.engines.sim", "from tierfuzz.sim.options import command"),
    ],
)
def test_a_right_import_is_allowed(module: str, source: str) -> None:
    assert wrong_imports(module, source, LAYERS) == []


def test_a_module_outside_the_table_has_no_layer() -> None:
    assert layer_of("tierfuzz.unheard_of", LAYERS) is None


def test_the_table_has_no_module_that_is_gone() -> None:
    heads = {module.split(".")[1] for module in MODULES if "." in module}
    dead = [name for _, names in LAYERS for name in names if not fnmatch.filter(heads, name)]
    assert dead == []


def test_every_package_is_installed() -> None:
    packages = {module for module, path in MODULES.items() if path.name == "__init__.py"}
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert sorted(setuptools["packages"]) == sorted(packages)
