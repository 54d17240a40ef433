"""Processes in a network of their own: they answer, they end, and their errors are told."""

from __future__ import annotations

import pytest

from tierfuzz.errors import EnvironmentFailure
from tierfuzz.routers import private
from tierfuzz.routers.private import PrivateProcess, SocketFolder


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No namespace is needed for what is tested here."""
    monkeypatch.setattr(private, "UNSHARE", ("env",))


def test_a_process_that_ends_is_said_with_its_log() -> None:
    process = PrivateProcess("tierfuzz.no_such_module")
    with pytest.raises(EnvironmentFailure, match=r"no_such_module ended at ask; its log: .*No module"):
        process.ask("ask")


def test_a_machine_without_namespaces_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "UNSHARE", ("false",))
    with pytest.raises(EnvironmentFailure, match=r"x listens on every interface, .* run as root"):
        private.check_private("x")
    monkeypatch.setattr(private, "UNSHARE", ("no-such-command",))
    with pytest.raises(EnvironmentFailure, match="No such file"):
        private.check_private("x")


def test_the_folder_of_sockets_goes() -> None:
    folder = SocketFolder()
    assert folder.path.is_dir()
    folder.close()
    assert not folder.path.exists()
