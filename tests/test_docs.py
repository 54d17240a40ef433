"""The pages in docs/ say what the code does."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tierfuzz import errors
from tierfuzz.consumers.link import Link
from tierfuzz.consumers.reference import Reference
from tierfuzz.errors import ExitCode
from tierfuzz.events import BlockRemoved, KvEvent, Tier
from tierfuzz.faults.registry import FAULTS, make_fault
from tierfuzz.model.cache import TieredCache
from tierfuzz.model.config import EngineConfig
from tierfuzz.model.engine import Engine
from tierfuzz.model.faults import SEAMS, Fault
from tierfuzz.model.pools import EngineCrash
from tierfuzz.model.request import Request
from tierfuzz.model.rules import PROFILES, rules_for
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.prompts import Piece, tokens_of
from tierfuzz.report.oracles import oracle_table
from tierfuzz.report.profiles import defect_switches, profile_table
from tierfuzz.sim.publisher import Publisher

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
OWNERS = {
    "cache": TieredCache,
    "engine": Engine,
    "publisher": Publisher,
    "link": Link,
    "consumer": Reference,
}


def table(page: str, heading: str) -> list[list[str]]:
    """Rows of the tables below a heading, without their heads."""
    section = (DOCS / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    tables = re.findall(r"^\|.*\n\|-.*\n((?:\|.*(?:\n|$))*)", section, re.MULTILINE)
    lines = [line for rows in tables for line in rows.splitlines()]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


# docs/faults.md ------------------------------------------------------------------------------------
def arguments_of(seam: str) -> str:
    """Names of a seam's arguments, as the page writes them."""
    names = list(inspect.signature(getattr(OWNERS[SEAMS[seam]], seam)).parameters)[1:]
    return f"`{', '.join(names)}`" if names else ""


def test_the_seams_are_all_described() -> None:
    rows = [(seam, owner, arguments) for seam, owner, arguments, _ in table("faults.md", "Seams")]
    assert rows == [(f"`{seam}`", owner, arguments_of(seam)) for seam, owner in SEAMS.items()]


def test_the_faults_are_all_described() -> None:
    described = [
        [f"`{name}`", f"`{fault.oracle}`", (inspect.getdoc(fault) or "").splitlines()[0], fault.source]
        for name, fault in FAULTS.items()
    ]
    assert table("faults.md", "Faults that come with tierfuzz") == described


def example_fault(folder: Path) -> Fault:
    """The fault that docs/faults.md shows, loaded as --plant loads it."""
    text = (DOCS / "faults.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (planted,) = re.findall(r"--plant (myfault\.py:\w+)", text)
    (folder / "myfault.py").write_text(code)
    return make_fault(f"{folder}/{planted}")


def events_of(faults: Sequence[Fault]) -> list[KvEvent]:
    """Events of an engine that serves more disjoint prompts than its host tier holds."""
    config = EngineConfig(page_size=16, device_tokens=256, host_tokens=272)
    engine = Engine(config, rules_for("default"), faults)
    events: list[KvEvent] = []
    for number in range(20):
        engine.submit(Request(str(number), tokens_of((Piece(f"s{number}", 0, 64),)), 1))
        for _ in range(100):
            events += [event for batch in engine.tick().batches for event in batch]
            if engine.idle:
                break
        assert engine.idle
    return events


def test_the_example_fault_loses_every_third_removal(tmp_path: Path) -> None:
    fault = example_fault(tmp_path)
    healthy = events_of([])
    removals = [e for e in healthy if isinstance(e, BlockRemoved) and e.tier is Tier.HOST]
    lost = removals[2::3]
    assert lost
    assert events_of([fault]) == [e for e in healthy if e not in lost]


def test_the_example_fault_has_what_a_fault_needs(tmp_path: Path) -> None:
    fault = example_fault(tmp_path)
    assert fault.oracle in {known.oracle for known in FAULTS.values()}
    assert fault.source
    assert fault.__doc__


# docs/profiles.md ----------------------------------------------------------------------------------
def test_the_profiles_page_has_the_table_of_the_code() -> None:
    assert profile_table() in (DOCS / "profiles.md").read_text()


def test_every_defect_switch_is_a_rule_with_a_meaning() -> None:
    switches = defect_switches()
    assert {s.name for s in switches} >= {"silent_revival", "storage_by_span", "storage_evicts_full"}
    assert "match_keeps_last" not in {s.name for s in switches}
    assert all(hasattr(PROFILES["default"], s.name) and s.meaning for s in switches)


def test_the_table_marks_what_differs_from_a_healthy_engine() -> None:
    rows = [line for line in profile_table().splitlines() if line.startswith("| `silent_revival`")]
    assert [cell.strip() for cell in rows[0].split("|")[2:5]] == ["off", "**on**", "off"]
    rows = [line for line in profile_table().splitlines() if line.startswith("| `storage_by_span`")]
    assert [cell.strip() for cell in rows[0].split("|")[2:5]] == ["on", "**off**", "on"]


# docs/oracles.md -----------------------------------------------------------------------------------
def test_the_oracles_page_has_the_table_of_the_code() -> None:
    assert f"\n\n{oracle_table()}\n\n" in (DOCS / "oracles.md").read_text()


def test_the_table_names_every_oracle_and_every_fault() -> None:
    rows = [line.split(" | ") for line in oracle_table().splitlines()[2:]]
    assert [row[0].strip("| `") for row in rows] == list(ORACLES)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row[-1])} == set(FAULTS)


# docs/messages.md ----------------------------------------------------------------------------------
def exit_code_of(name: str) -> ExitCode | None:
    """Exit code of an exception by its class name; None for one that is not tierfuzz's."""
    found = {"EngineCrash": EngineCrash, **vars(errors)}.get(name)
    if inspect.isclass(found) and issubclass(found, errors.TierfuzzError):
        return found.exit_code
    return None


def pattern(message: ast.expr) -> str:
    """First line of a message with an ellipsis for every value in it; "" where it is all values."""
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    text = "".join(
        p.value if isinstance(p, ast.Constant) and isinstance(p.value, str) else "…" for p in parts
    )
    first = re.sub("…+", "…", text.split("\n")[0])
    return first if re.search("[A-Za-z]", first) else ""


def messages_in(source: str) -> Iterator[tuple[str, ExitCode]]:
    """Messages of the errors that a module raises on purpose."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args:
            code = exit_code_of(ast.unparse(node.func).split(".")[-1])
            if code is not None and (message := pattern(node.args[0])):
                yield message, code


def messages_of_the_code() -> set[tuple[str, ExitCode]]:
    """Messages of every module of the package."""
    paths = [path for folder in ("src", "strategies") for path in (ROOT / folder).rglob("*.py")]
    return {found for path in paths for found in messages_in(path.read_text())}


def messages_of_the_page() -> set[tuple[str, ExitCode]]:
    """Messages of docs/messages.md, which has a section for each exit code that has some."""
    sections = {
        "Exit code 2": ExitCode.USAGE,
        "Exit code 3": ExitCode.ENVIRONMENT,
        "Exit code 4": ExitCode.VACUOUS,
    }
    return {
        (re.sub(r"^`+ ?| ?`+$", "", row[0]), code)
        for heading, code in sections.items()
        for row in table("messages.md", heading)
    }


def test_every_message_is_explained() -> None:
    missing = messages_of_the_code() - messages_of_the_page()
    assert not missing, "docs/messages.md lacks:\n" + "\n".join(f"{m} (exit code {c})" for m, c in missing)


def test_every_explained_message_exists() -> None:
    assert messages_of_the_page() - messages_of_the_code() == set()


def test_the_exit_codes_are_listed() -> None:
    assert [int(row[0]) for row in table("messages.md", "Exit codes")] == list(ExitCode)


def test_every_explained_message_has_a_cure() -> None:
    for heading in ("Exit code 2", "Exit code 3"):
        assert all(len(row) == 2 and row[1].endswith(".") for row in table("messages.md", heading))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("raise UsageError(f'a {b!r}{c}: d')", {("a …: d", ExitCode.USAGE)}),
        ("raise errors.WorkerDied('a\\nlog')", {("a", ExitCode.ENVIRONMENT)}),
        ("raise UsageError(message)", set()),
        ("raise UsageError(f'{a}: {b}')", set()),
        ("raise ValueError('a')", set()),
    ],
)
def test_messages_are_read_from_the_code(source: str, found: set[tuple[str, ExitCode]]) -> None:
    assert set(messages_in(source)) == found


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(ROOT / "tests").rglob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text())]
    assert links
    assert [f"{page}: {link}" for page, link in links if not (page.parent / link).exists()] == []
