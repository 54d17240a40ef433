"""The pytest plugin, by running pytest inside pytest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


def test_the_gpu_profile_skips_with_one_reason_without_a_gpu(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    pytester.makepyfile(test_small=MACHINE)
    result = pytester.runpytest_subprocess("--hypothesis-profile=gpu", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*SKIPPED*the gpu profile needs a GPU*"])


def test_an_engine_that_is_required_fails_instead(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    pytester.makepyfile(test_fleet="def test_it(tier_fleet): pass\n")
    result = pytester.runpytest_subprocess("--hypothesis-profile=gpu", "--tier-require-engine")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the gpu profile needs a GPU*"])


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
    ],
)
def test_bad_options_are_usage_errors(pytester: pytest.Pytester, option: str, said: str) -> None:
    pytester.makepyfile(test_fleet="def test_it(tier_fleet): pass\n")
    result = pytester.runpytest_subprocess(option)
    result.stdout.fnmatch_lines([said])
    assert result.ret != 0


def test_attaching_is_refused_with_the_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_nothing="def test_it(): pass\n")
    result = pytester.runpytest_subprocess("--tier-worker=http://127.0.0.1:1")
    result.stderr.fnmatch_lines(["*attaching to running workers is not supported yet*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("profile", ["sim", "ci", "gpu", "soak"])
def test_the_profiles_exist_also_under_ci(
    profile: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(
        test_profile=f"""
        from hypothesis import settings
        def test_it():
            profile = settings.get_profile("{profile}")
            assert profile.derandomize is ({profile!r} == "ci")
            assert (profile.database is None) is ({profile!r} == "ci")
            assert profile.deadline is None
        """
    )
    pytester.runpytest_subprocess(f"--hypothesis-profile={profile}").assert_outcomes(passed=1)


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
