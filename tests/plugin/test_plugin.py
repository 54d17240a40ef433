"""The pytest plugin, by running pytest inside pytest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tierfuzz.program import load_program

README = Path(__file__).parents[2] / "README.md"

MACHINE = """
from hypothesis import settings
from tierfuzz.machine import TierMachine

class Small(TierMachine):
    policy = "write_back"

Small.TestCase.settings = settings(Small.TestCase.settings, max_examples=2, stateful_step_count=8)
TestSmall = Small.TestCase
"""


QUICK = """
from hypothesis import settings
TestWriteBack.settings = settings(TestWriteBack.settings, max_examples=2)
"""


def python_of_readme() -> str:
    """The example that the README shows."""
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_the_example_of_the_readme_runs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_readme=python_of_readme() + QUICK)
    result = pytester.runpytest_subprocess("--hypothesis-profile=ci")
    result.assert_outcomes(passed=1)


def test_a_violation_leaves_its_program(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_faulty="""
        from tierfuzz.machine import TierMachine
        from tierfuzz.program import FleetConfig

        class Faulty(TierMachine):
            fleet = FleetConfig(host_ratio=3.0, plants=("removal-twice",))
            repeats = 1

        TestFaulty = Faulty.TestCase
        """
    )
    result = pytester.runpytest_subprocess("--hypothesis-profile=ci")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*UnmatchedRemovalViolation*", "*tierfuzz replay *"])
    folder, whole, program = sorted((pytester.path / "tierfuzz-out").iterdir())
    assert program.name == f"{folder.name}.json" == "test_faulty.py-TestFaulty-runTest.json"
    assert (folder / "program.json").read_bytes() == program.read_bytes()
    assert "unmatched-removal" in (folder / "verdict.txt").read_text()
    assert "removal-twice" in load_program(program).fleet.plants
    assert 0 < len(load_program(program).operations) < len(load_program(whole).operations)
    assert whole.name == f"{folder.name}-full.json"
    result.stdout.fnmatch_lines(["*without any one operation it passes*"])


def test_the_gpu_profile_skips_with_one_reason_without_a_gpu(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    pytester.makepyfile(test_small=MACHINE)
    result = pytester.runpytest_subprocess("--hypothesis-profile=gpu", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*SKIPPED*engine sglang needs a GPU*"])


def test_an_engine_that_is_required_fails_instead(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    pytester.makepyfile(test_fleet="def test_it(tier_fleet): pass\n")
    result = pytester.runpytest_subprocess("--hypothesis-profile=gpu", "--tier-require-engine")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*engine sglang needs a GPU*"])


def test_the_fleet_fixture_is_a_running_fleet(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_fleet="""
        def test_it(tier_fleet):
            assert [w.judge.fleet.policy for w in tier_fleet.workers] == ["write_back"] * 3
            assert all(w.process.alive() for w in tier_fleet.workers)
        """
    )
    result = pytester.runpytest_subprocess("--tier-policy=write_back", "--tier-workers=3")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--tier-policy=sometimes", "*--tier-policy 'sometimes': expected one of write_through*"),
        ("--tier-engine=warp", "*unknown engine 'warp'*"),
        ("--tier-worker=http://127.0.0.1:1", "*http://127.0.0.1:1 cannot be tested: *"),
        ("--tier-engine=sglang-cpu --tier-engine-version=9", "*SGLang version '9': expected one of*"),
    ],
)
def test_bad_options_are_usage_errors(pytester: pytest.Pytester, option: str, said: str) -> None:
    pytester.makepyfile(test_fleet="def test_it(tier_fleet): pass\n")
    result = pytester.runpytest_subprocess(*option.split())
    pytest.LineMatcher(result.outlines + result.errlines).fnmatch_lines([said])
    assert result.ret != 0


def test_the_profiles_exist_also_under_ci(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(
        test_profile="""
        from hypothesis import settings
        def test_it():
            assert settings.get_current_profile_name() == "soak"
            for name in ("sim", "ci", "gpu", "soak"):
                profile = settings.get_profile(name)
                assert profile.derandomize is (name == "ci")
                assert (profile.database is None) is (name == "ci")
                assert profile.deadline is None
        """
    )
    pytester.runpytest_subprocess("--hypothesis-profile=soak").assert_outcomes(passed=1)


BUDGET = """
from hypothesis import HealthCheck
from tierfuzz.machine import TierMachine

class Small(TierMachine):
    pass

def test_it():
    used = Small.TestCase.settings
    assert (used.max_examples, used.stateful_step_count, used.derandomize) == {expected}
    assert used.deadline is None
    assert set(used.suppress_health_check) == set(HealthCheck)
"""
NO_CI = ("CI", "__TOX_ENVIRONMENT_VARIABLE_ORIGINAL_CI", "GITHUB_ACTIONS", "TF_BUILD", "BUILDKITE")


@pytest.mark.parametrize(
    ("arguments", "ci", "conftest", "expected"),
    [
        ((), False, "", (25, 30, False)),
        (("--hypothesis-profile=gpu",), True, "", (20, 40, False)),
        ((), True, "", (15, 25, True)),
        (("--hypothesis-profile=ci",), False, "", (15, 25, True)),
        (("--hypothesis-profile=sim",), False, "max_examples=7", (7, 50, False)),
    ],
)
def test_a_machine_has_a_budget_for_live_workers(
    arguments: tuple[str, ...],
    ci: bool,
    conftest: str,
    expected: tuple[int, int, bool],
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in NO_CI:
        monkeypatch.delenv(name, raising=False)
    if ci:
        monkeypatch.setenv("CI", "true")
    if conftest:
        pytester.makeconftest(
            f"from hypothesis import settings\nsettings.register_profile('sim', {conftest})\n"
        )
    pytester.makepyfile(test_budget=BUDGET.format(expected=expected))
    pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=1)


def test_people_who_do_not_use_it_pay_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_plain="""
        import sys
        def test_it():
            heavy = {"zmq", "httpx", "tierfuzz.machine", "tierfuzz.fleet", "starlette"}
            assert not heavy & set(sys.modules)
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
