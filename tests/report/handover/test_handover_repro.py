"""repro.py as text: it stands alone, has what it needs and no more."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from handover_story import AGAIN, EVIDENCE, MISS, PROGRAM

from tierfuzz.evidence import Evidence
from tierfuzz.oracles.registry import ORACLES
from tierfuzz.program import Attach, Attached, ClearStorage, Detach, FleetConfig, Generate, Hold, Program
from tierfuzz.prompts import Piece
from tierfuzz.report.handover.repro import LAST_PART, PARTS, check_names, repro_text, source_of
from tierfuzz.report.handover.steps import BY_EVENTS, BY_TRANSPORT, FALLBACK, accusations, steps_of
from tierfuzz.report.handover.writer import handover_files
from tierfuzz.verdict import Outcome, Verdict

ALLOWED = {"httpx", "zmq", "msgspec", *sys.stdlib_module_names}


def violation(oracle: str, **facts: Any) -> Verdict:
    """A violation at op2."""
    return Verdict(oracle, Outcome.VIOLATION, 1, "op2", "wrong", facts=facts)


def script(*oracles: str) -> ast.Module:
    """The script for violations of these oracles."""
    return ast.parse(repro_text(PROGRAM, [violation(oracle) for oracle in oracles], EVIDENCE))


def functions(tree: ast.Module) -> set[str]:
    """Names of its functions."""
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def data(tree: ast.Module, name: str) -> Any:
    """The value of a constant."""
    (value,) = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == name]
    return ast.literal_eval(value)


def test_it_imports_three_libraries_and_no_tierfuzz() -> None:
    tree = script(*ORACLES)
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    heads = {name.split(".")[0] for name in names}
    assert heads >= {"httpx", "zmq", "msgspec"}
    assert heads <= ALLOWED


def test_no_two_parts_define_the_same_name() -> None:
    names: list[str] = []
    for part in (*PARTS, "checks", LAST_PART):
        for node in ast.parse(source_of(part)).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.append(node.name)
            elif isinstance(node, ast.Assign):
                names += [ast.unparse(target) for target in node.targets]
    assert sorted(names) == sorted(set(names))


def test_every_name_of_the_script_is_defined_in_it(tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    path.write_text(repro_text(PROGRAM, [violation(oracle) for oracle in ORACLES], EVIDENCE))
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,E9", str(path)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_checks_that_it_needs_are_in_it() -> None:
    assert functions(script("host-miss")) & set(check_names()) == {"host_miss"}
    assert "announced" in functions(script("prefix-miss"))
    assert "announced" not in functions(script("content"))
    assert functions(script("clear-scope")) & set(check_names()) == {"clear_scope", "phantom_hit"}
    assert functions(script("duplicate-store")) & set(check_names()) == set()
    assert functions(script("never-heard-of")) & set(check_names()) == {FALLBACK}


def test_every_check_is_of_an_oracle() -> None:
    slugs = {name.replace("_", "-") for name in check_names() if name != FALLBACK}
    assert slugs | BY_EVENTS | BY_TRANSPORT <= set(ORACLES)
    assert not slugs & (BY_EVENTS | BY_TRANSPORT)


def test_the_steps_are_the_operations_with_what_was_expected_and_seen() -> None:
    steps = data(script("host-miss"), "STEPS")
    assert [step["id"] for step in steps] == [operation.id for operation in PROGRAM.operations]
    (probe,) = steps[2]["calls"]
    assert probe["prompt"] == [["A", 0, 37]]
    assert (probe["most"], probe["held"], probe["host_only"]) == (32, 32, 32)
    assert probe["expected"] == "device 0, host at least 32"
    assert probe["seen"] == "cached 0 = device 0 + host 0"
    assert (steps[2]["rest"], steps[0]["rest"]) == (True, False)
    assert [call.get("abort_after_s") for call in steps[3]["calls"]] == [None, 0.5]
    assert (steps[1]["due"], steps[1]["most"], steps[1]["until"]) == (1, 3, "op0")


def test_workers_are_numbered_by_their_place_among_those_that_are_used() -> None:
    tree = script("host-miss")
    assert data(tree, "SETUP")["workers"] == ["http://127.0.0.1:30010"]
    assert {call["worker"] for step in data(tree, "STEPS") for call in step.get("calls", ())} == {0}
    assert [check["worker"] for check in data(tree, "ACCUSED")] == [0]


def test_namespaces_come_with_the_seed_of_their_hashes() -> None:
    request = Generate("a", 0, (Piece("A", 0, 20),), 1, "namespaced", "tenant")
    (step,) = steps_of(Program(FleetConfig(workers=1), (request,)), Evidence())
    (call,) = step["calls"]
    assert call["namespace"] == "tenant"
    assert len(bytes.fromhex(call["seed"])) == 32
    aliasing = FleetConfig(workers=1, profile="sglang-0.5.17")
    (step,) = steps_of(Program(aliasing, (request,)), Evidence())
    assert "seed" not in step["calls"][0]


def test_control_operations_are_requests_of_their_own() -> None:
    operations = (Hold("h", 0), ClearStorage("c", 0), Attach("a", 0, "write_back"), Detach("d", 0))
    steps = steps_of(Program(FleetConfig(workers=1, storage_threshold=32), operations), Evidence())
    assert [(step["do"], step.get("method"), step.get("path")) for step in steps] == [
        ("release", None, None),  # the runner holds nothing back beside storage
        ("clear_storage", "POST", "/hicache/storage-backend/clear"),
        ("attach", "PUT", "/hicache/storage-backend"),
        ("detach", "DELETE", "/hicache/storage-backend"),
    ]
    assert steps[2]["body"]["hicache_write_policy"] == "write_back"


def test_copies_are_held_back_where_the_runner_holds_them() -> None:
    for threshold, done in ((0, "hold"), (32, "release")):
        fleet = FleetConfig(workers=1, storage_threshold=threshold)
        (step,) = steps_of(Program(fleet, (Hold("h", 0),)), Evidence())
        assert step["do"] == done


def test_an_unknown_is_no_accusation_and_events_are_accused_once_an_oracle() -> None:
    unknown = Verdict("content", Outcome.UNKNOWN, 1, "op2", "not sure")
    found = accusations(PROGRAM, [MISS, AGAIN, AGAIN, unknown, *[MISS] * 9], check_names())
    assert [check["oracle"] for check in found].count("duplicate-store") == 1
    assert {check["oracle"] for check in found} == {"host-miss", "duplicate-store"}
    assert len(found) == 4


@pytest.mark.parametrize("oracle", sorted(ORACLES))
def test_a_script_can_be_made_for_every_oracle(oracle: str) -> None:
    compile(repro_text(PROGRAM, [violation(oracle)], EVIDENCE), "repro.py", "exec")


# workers that ran already --------------------------------------------------------------------------
THERE = Attached("http://gpu7:30000", "tcp://gpu7:5557", "tcp://gpu7:5558")
ATTACHED = Program(FleetConfig(workers=1, attached=(THERE,)), (Generate("op2", 0, (Piece("A", 0, 37),), 2),))


def test_workers_that_ran_already_are_named_and_their_key_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIERFUZZ_API_KEY", "secret-of-somebody")
    files = handover_files(ATTACHED, [violation("host-miss", host_only=32)], Evidence())
    assert not [name for name, text in files.items() if "secret-of-somebody" in text]
    setup = data(ast.parse(files["repro.py"]), "SETUP")
    assert (setup["workers"], setup["key"], setup["empty"]) == (["http://gpu7:30000"], "", False)
    assert "http://gpu7:30000" in files["curl.sh"]
    assert 'flush "$W0"' not in files["curl.sh"]
    assert "It ran already: start it as its owner does, with pages of 16 tokens" in files["launch.txt"]


def test_workers_that_may_be_emptied_are() -> None:
    fleet = FleetConfig(workers=1, attached=(THERE,), destructive=True)
    text = repro_text(Program(fleet, ATTACHED.operations), [MISS], Evidence())
    assert data(ast.parse(text), "SETUP")["empty"] is True
