"""Tails of log files."""

from __future__ import annotations

from pathlib import Path

from tierfuzz.worker.logs import LogFile


def test_the_tail_is_the_last_lines(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "deep" / "worker.log")
    with log.open() as file:
        file.write(b"".join(b"line %d\n" % number for number in range(1000)))
    assert log.tail(3) == "line 997\nline 998\nline 999"


def test_later_lives_are_appended(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "worker.log")
    for life in (b"first\n", b"second\n"):
        with log.open() as file:
            file.write(life)
    assert log.tail(5) == "first\nsecond"


def test_a_huge_file_is_not_read_whole_and_its_last_line_is_there(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "worker.log")
    with log.open() as file:
        file.truncate(1 << 40)  # sparse: more than any memory
        file.write(b"\nthe end\n")
    assert log.tail(1) == "the end"


def test_bytes_that_are_no_text_are_shown_somehow(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "worker.log")
    log.path.write_bytes(b"a\xff\xfeb\n")
    assert log.tail(1) == "a\ufffd\ufffdb"


def test_no_log_and_an_empty_log_are_told_apart(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "worker.log")
    assert log.tail(1) == "(no log: No such file or directory)"
    log.open().close()
    assert log.tail(1) == "(empty log)"
    log.remove()
    log.remove()
    assert not log.path.exists()
