"""The short form for terminals: what was violated, a line an operation with its outcome, and the folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tierfuzz.evidence import Evidence
from tierfuzz.program import Program
from tierfuzz.report.handover.story import Chapter, chapters
from tierfuzz.report.handover.words import operation_text, reply_text
from tierfuzz.verdict import Verdict

MOST_LINES = 12


def short_text(
    program: Program, verdicts: Sequence[Verdict], evidence: Evidence, folder: Path | None = None
) -> str:
    """At most MOST_LINES operations, the last ones: they show what is wrong."""
    oracles = list(dict.fromkeys(verdict.oracle for verdict in verdicts if verdict.is_violation))
    lines = [f"{program.fleet.policy}: {', '.join(oracles)}"]
    told = [_line(chapter, verdicts) for chapter in chapters(evidence) if chapter.operation is not None]
    left_out = max(0, len(told) - MOST_LINES)
    lines += [f"  ... {left_out} operations before, see timeline.txt"] if left_out else []
    lines += told[left_out:]
    lines += [f"  folder: {folder}"] if folder is not None else []
    return "\n".join(lines)


def _line(chapter: Chapter, verdicts: Sequence[Verdict]) -> str:
    assert chapter.operation is not None
    mine = {chapter.operation.id, *(sent.request.id for sent in chapter.sent)}
    found = [v.oracle for v in verdicts if v.is_violation and v.operation in mine]
    blame = f"  <-- {', '.join(dict.fromkeys(found))}" if found else ""
    text = operation_text(chapter.operation)
    return f"  {chapter.operation.id:5} {text}: {_outcome(chapter)}{blame}"


def _outcome(chapter: Chapter) -> str:
    """Of one request its accounting; of several how much was cached."""
    seen = chapter.observations
    if not seen:
        return "done"
    if len(seen) == 1:
        return reply_text(seen[0])
    cached = sum(one.cached_tokens or 0 for one in seen)
    failed = sum(one.status == "failed" for one in seen)
    return f"{len(seen)} requests, cached {cached}" + (f", {failed} failed" if failed else "")
