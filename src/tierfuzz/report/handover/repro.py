"""repro.py: the parts of the script joined into one file, with the program as data at its top."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from importlib.resources import files
from typing import Any

from tierfuzz.evidence import Evidence
from tierfuzz.program import Program
from tierfuzz.report.handover.steps import FALLBACK, accusations, setup_of, steps_of
from tierfuzz.verdict import Verdict

PARTS = ("worker", "events", "book", "run", "operations")
LAST_PART = "main"
CHECKS = "checks"
CALLED = {"clear_scope": "phantom_hit", "host_miss": "announced", "prefix_miss": "announced"}
HEAD = '''#!/usr/bin/env python3
"""{title}

Sends exactly the requests of a failing program of tierfuzz to workers that run already, and says what it
sees. Needs Python 3.11, httpx, pyzmq and msgspec; not tierfuzz. Exits 1 when the bug shows, 0 when it does
not, 3 when a worker cannot be reached. It empties and fills the cache of the workers: use workers of your own
(launch.txt).
"""
'''
DATA = """
# What the workers are: sizes in pages of {page} tokens, bounds in seconds.
SETUP = {setup}

# The program. A prompt is pieces [stream, start, stop]: see token().
STEPS = {steps}

# What was accused, with the figures of the accusation.
ACCUSED = {accused}
"""
END = """

CHECKS |= {{{checks}}}

if __name__ == "__main__":
    raise SystemExit(main(SETUP, STEPS, ACCUSED))
"""


def repro_text(program: Program, verdicts: Sequence[Verdict], evidence: Evidence) -> str:
    """The script. Only the checks that it needs are in it."""
    accused = accusations(program, verdicts, check_names())
    needed = sorted({check["by"] for check in accused} & set(check_names()))
    setup = setup_of(program, verdicts)
    imports, bodies = _joined({*needed, *_called(accused)})
    data = DATA.format(
        page=program.fleet.page_size,
        setup=_mapping(setup),
        steps=_list(steps_of(program, evidence)),
        accused=_list(accused),
    )
    names = ", ".join(f'"{name}": {name}' for name in needed)
    return HEAD.format(title=setup["title"]) + imports + data + bodies + END.format(checks=names)


def _called(accused: list[dict[str, Any]]) -> set[str]:
    """Functions that the checks are made of."""
    return {CALLED[check["by"]] for check in accused if check["by"] in CALLED}


def _mapping(values: dict[str, Any]) -> str:
    return "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in values.items()) + "}"


def _list(values: list[dict[str, Any]]) -> str:
    return "[\n" + "".join(f"    {_item(value)},\n" for value in values) + "]"


def _item(value: dict[str, Any]) -> str:
    """On one line, but for a list of requests: each of them has a line."""
    if "calls" not in value:
        return repr(value)
    head = {key: item for key, item in value.items() if key != "calls"}
    calls = "".join(f"        {call!r},\n" for call in value["calls"])
    return f"{repr(head)[:-1]}, 'calls': [\n{calls}    ]}}"


# the parts -----------------------------------------------------------------------------------------
def source_of(part: str) -> str:
    """Source of a part of the script."""
    return (files("tierfuzz.report.handover.script") / f"{part}.py").read_text()


def check_names() -> tuple[str, ...]:
    """Functions of the part `checks`: slugs of oracles with underscores, and the fallback."""
    tree = ast.parse(source_of(CHECKS))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = tuple(
        node.name for node in functions if [arg.arg for arg in node.args.args][1:] == ["at", "facts"]
    )
    assert FALLBACK in names
    return names


def _joined(checks: Set[str]) -> tuple[str, str]:
    """Imports of all parts, sorted, and their bodies in order."""
    sources = [source_of(part) for part in (*PARTS, CHECKS, LAST_PART)]
    imports: set[str] = set()
    bodies: list[str] = []
    for part, source in zip((*PARTS, CHECKS, LAST_PART), sources, strict=True):
        tree = ast.parse(source)
        imports |= {ast.unparse(node) for node in tree.body if _is_import(node) and not _is_own(node)}
        only = checks if part == CHECKS else None
        bodies.append(_body(source, tree, only))
    return _import_block(imports), "".join(f"\n\n# {'-' * 90}\n{body}" for body in bodies)


def _body(source: str, tree: ast.Module, only: Set[str] | None) -> str:
    """Everything below the imports, as it is written, comments too; of `only` these functions."""
    lines = source.splitlines()
    last = max((node.end_lineno or 0 for node in tree.body if _is_import(node)), default=0)
    title = (ast.get_docstring(tree) or "").splitlines()[0]
    if only is None:
        return f"# {title}\n" + "\n".join(lines[last:]).strip() + "\n"
    wanted = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in only]
    aliases = [node for node in tree.body if isinstance(node, ast.Assign)]
    parts = ["\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in (*aliases, *wanted)]
    return f"# {title}\n" + "\n\n\n".join(parts) + "\n"


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_own(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tierfuzz")


def _import_block(imports: set[str]) -> str:
    future = "from __future__ import annotations"
    foreign = {line for line in imports if line.split()[1].split(".")[0] in ("httpx", "zmq", "msgspec")}
    own = sorted(imports - foreign - {future}, key=lambda line: (line.split()[0] == "from", line))
    return "\n".join(["", future, "", *own, "", *sorted(foreign), ""])
