"""The command group: help without imports, errors as one message and their exit code, Ctrl-C."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from tierfuzz import cli, errors
from tierfuzz.cli import COMMANDS, main
from tierfuzz.errors import ExitCode, TierfuzzError


def failing(error: BaseException) -> click.Command:
    """A command that only raises."""

    @click.command()
    def command() -> None:
        raise error

    return command


def invoke(monkeypatch: pytest.MonkeyPatch, error: BaseException, *options: str) -> tuple[int, str]:
    """Exit code and standard error of a command that raises."""
    monkeypatch.setattr(cli._LazyGroup, "get_command", lambda *_: failing(error))
    result = CliRunner().invoke(main, [*options, "run"])
    assert result.stdout == ""
    return result.exit_code, result.stderr


def test_help_lists_every_command_without_loading_one() -> None:
    script = (
        "import sys\n"
        "from tierfuzz.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print(sorted(set(sys.modules) & {'hypothesis', 'httpx', 'zmq', 'numpy', 'rich', 'msgspec'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *help_lines, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    listed = [line.split()[0] for line in help_lines[help_lines.index("Commands:") + 1 :]]
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert f"{name} [OPTIONS]" in result.stdout


def test_an_unknown_command_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["walk"])
    assert result.exit_code == ExitCode.USAGE
    assert "No such command 'walk'" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError("no such page"), 2),
        (errors.FormatError("no such page"), 2),
        (errors.WorkerDied("no such page"), 3),
        (errors.RequestFailed("no such page"), 3),
        (errors.VacuousRun("no such page"), 4),
    ],
)
def test_an_error_is_one_message_and_its_exit_code(
    error: TierfuzzError, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke(monkeypatch, error) == (code, "error: no such page\n")


def test_debug_shows_the_traceback_and_keeps_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = invoke(monkeypatch, errors.UsageError("no such page"), "--debug")
    assert code == ExitCode.USAGE
    assert text.startswith("Traceback")
    assert text.endswith("error: no such page\n")


def test_ctrl_c_is_one_line_and_130(monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke(monkeypatch, KeyboardInterrupt()) == (130, "Interrupted.\n")


def test_a_defect_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli._LazyGroup, "get_command", lambda *_: failing(ZeroDivisionError("ours")))
    result = CliRunner().invoke(main, ["run"])
    assert isinstance(result.exception, ZeroDivisionError)
