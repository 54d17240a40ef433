"""Conformance: recordings of a real engine against the step model, one row a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tierfuzz.compare import Comparison, compare
from tierfuzz.errors import UsageError
from tierfuzz.model.replay import OpResult, recorded_rules, replay
from tierfuzz.oracles.judge import Judge
from tierfuzz.oracles.recorded import judge_recording
from tierfuzz.recording import Recording, read_recording

OVERLAP = "overlap"
# Claims about requests; defects of the event stream that a version is known for are not counted here.
CLAIMS = (
    "phantom-hit",
    "split-sum",
    "ledger-accounting",
    "overlap-miss",
    "overlap-excess",
    "load-accounting",
    "host-unseen",
    "insert-bound",
)
Predict = Callable[[Recording, str | None], list[OpResult]]


@dataclass(frozen=True)
class ConformRow:
    """Agreement of one file; `kind` is sequential or overlap (compared by the oracles instead)."""

    file: str
    kind: str
    results_ok: int
    results: int
    windows_ok: int
    windows: int
    late: int
    spilt: int
    boundaries_ok: int
    boundaries: int
    boundaries_late: int
    unpublished: int
    regrouped: int
    ok: bool
    differences: list[str] = field(default_factory=list)


def model_predicts(recording: Recording, profile: str | None) -> list[OpResult]:
    """What the step model says of every operation."""
    return replay(recording, recorded_rules(recording.header, profile))


def find_recordings(paths: Sequence[Path]) -> list[Path]:
    """Files as given, and the recordings in folders; UsageError when there are none."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.name.endswith((".jsonl", ".jsonl.xz")))
        elif path.is_file():
            found.append(path)
        else:
            raise UsageError(f"{path} does not exist; expected a recording (.jsonl, .jsonl.xz) or a folder")
    if not found:
        raise UsageError(f"no recordings in {', '.join(map(str, paths))}; expected .jsonl or .jsonl.xz files")
    return found


def conform_file(path: Path, profile: str | None = None, predict: Predict = model_predicts) -> ConformRow:
    """Compare one recording: a sequential one with a prediction, an overlapping one with the oracles.

    The step model predicts one request at a time; of requests that overlap only claims can be checked (6.6).
    """
    recording = read_recording(path)
    if recording.header.kind == OVERLAP:
        return _overlap_row(path, judge_recording(recording))
    return row(path, compare(recording, predict(recording, profile)))


def _overlap_row(path: Path, judge: Judge) -> ConformRow:
    """`results`: claims made by the oracles over replies and bursts; `results_ok`: those that held."""
    seen = {key.removeprefix("violation:"): n for key, n in judge.docket.seen.items() if "violation" in key}
    wrong = sum(seen.get(slug, 0) for slug in CLAIMS)
    held = sum(judge.docket.held[slug] for slug in CLAIMS)
    found = Comparison(results=held + wrong, results_ok=held)
    for verdict in judge.take_verdicts():
        if verdict.oracle in CLAIMS and verdict.is_violation:
            found.differs(f"{verdict.operation}: {verdict.oracle}: {verdict.message}")
    return row(path, found, OVERLAP)


def row(path: Path, found: Comparison, kind: str = "sequential") -> ConformRow:
    """The row of a comparison."""
    return ConformRow(
        file=path.name,
        kind=kind,
        results_ok=found.results_ok,
        results=found.results,
        windows_ok=found.windows_ok,
        windows=found.windows,
        late=found.late,
        spilt=found.spilt,
        boundaries_ok=found.boundaries_ok,
        boundaries=found.boundaries,
        boundaries_late=found.boundaries_late,
        unpublished=found.unpublished,
        regrouped=found.regrouped,
        ok=found.ok,
        differences=found.differences,
    )
