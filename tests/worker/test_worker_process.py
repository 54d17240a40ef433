"""Worker processes: output to a file, ends as a whole, never outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from waiting import BOUND_S, wait_for

from tierfuzz.errors import EnvironmentFailure, WorkerDied
from tierfuzz.worker.process import WorkerProcess

SLEEPS = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS
# Starts a stubborn grandchild (argv[1]: in a session of its own or not) and tells its pid.
PARENT_OF_STUBBORN = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], start_new_session=sys.argv[1] == "own",
                         stdout=subprocess.PIPE)
child.stdout.readline()
print("grandchild", child.pid, flush=True)
time.sleep(600)
"""


def worker(tmp_path: Path, code: str, *arguments: str) -> WorkerProcess:
    """A process that runs Python code, not yet started."""
    return WorkerProcess([sys.executable, "-c", code, *arguments], tmp_path / "worker.log")


def says(process: WorkerProcess, word: str) -> str:
    """The line of its log that starts with `word`, once it is complete."""

    def found() -> str:
        assert process.alive(), process.told()
        lines = process.log_path.read_text().splitlines(keepends=True)
        return next((line for line in lines if line.startswith(word) and line.endswith("\n")), "")

    return wait_for(f"{word!r} in the log", found)


def gone(pid: int) -> bool:
    """No such process, or only its entry in the table."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_output_of_both_streams_is_in_the_log_while_the_child_runs(tmp_path: Path) -> None:
    code = "import sys, time; print('out'); print('err', file=sys.stderr); time.sleep(600)"
    with worker(tmp_path, code) as process:
        says(process, "out")
        says(process, "err")
        assert process.alive()
        assert process.status is None
    assert not process.log_path.exists()


def test_more_output_than_a_pipe_holds_does_not_stop_the_child(tmp_path: Path) -> None:
    code = "print('x' * 3_000_000); print(); print('done'); import time; time.sleep(600)"
    with worker(tmp_path, code) as process:
        says(process, "done")


def test_the_environment_is_added_to_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_PARENT", "1")
    code = "import os, time; print('got', os.environ['OF_THE_PARENT'], os.environ['OF_THE_WORKER'])"
    process = WorkerProcess([sys.executable, "-c", code], tmp_path / "log", {"OF_THE_WORKER": "2"})
    process.start()
    wait_for("its end", lambda: not process.alive())
    assert process.stop() == 0
    assert process.log_tail() == "got 1 2"


def test_stop_asks_first(tmp_path: Path) -> None:
    code = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); " + SLEEPS
    process = worker(tmp_path, code)
    process.start()
    says(process, "up")
    assert process.stop(BOUND_S) == 7
    assert not process.alive()
    assert process.status == 7
    assert gone(process.pid)


@pytest.mark.parametrize("session", ["own", "shared"])
@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_the_whole_tree_ends(tmp_path: Path, session: str, ending: str) -> None:
    process = worker(tmp_path, PARENT_OF_STUBBORN, session)
    process.start()
    grandchild = int(says(process, "grandchild").split()[1])
    assert not gone(grandchild)
    status = process.stop(BOUND_S) if ending == "stop" else process.kill()
    assert status == (-signal.SIGTERM if ending == "stop" else -signal.SIGKILL)
    wait_for("the grandchild's end", lambda: gone(grandchild))


def test_a_stubborn_process_is_killed_after_its_grace(tmp_path: Path) -> None:
    process = worker(tmp_path, STUBBORN)
    process.start()
    says(process, "up")
    assert process.stop(0.1) == -signal.SIGKILL


def test_leftovers_of_a_process_that_ended_by_itself_are_ended(tmp_path: Path) -> None:
    code = PARENT_OF_STUBBORN.replace("time.sleep(600)\n", "sys.exit(3)\n")
    process = worker(tmp_path, code, "shared")
    process.start()
    wait_for("its end", lambda: not process.alive())
    grandchild = int(process.log_tail().split()[1])
    assert not gone(grandchild)
    assert process.stop() == 3
    wait_for("the grandchild's end", lambda: gone(grandchild))


def test_a_paused_process_still_obeys_stop(tmp_path: Path) -> None:
    process = worker(tmp_path, SLEEPS)
    process.start()
    says(process, "up")
    process.pause()
    wait_for("the pause", lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    assert process.alive()
    assert process.stop(BOUND_S) == -signal.SIGTERM


def test_resume_heals_pause(tmp_path: Path) -> None:
    with worker(tmp_path, SLEEPS) as process:
        says(process, "up")
        process.pause()
        wait_for("the pause", lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        process.resume()
        wait_for("the end of it", lambda: psutil.Process(process.pid).status() != psutil.STATUS_STOPPED)


def test_it_can_be_started_again_and_the_log_goes_on(tmp_path: Path) -> None:
    process = worker(tmp_path, SLEEPS)
    process.start()
    says(process, "up")
    first = process.pid
    process.kill()
    with process:
        wait_for("the second life", lambda: process.log_tail() == "up\nup")
        assert process.pid != first


def test_starting_twice_is_refused(tmp_path: Path) -> None:
    with (
        worker(tmp_path, SLEEPS) as process,
        pytest.raises(EnvironmentFailure, match="started already; stop"),
    ):
        process.start()


def dies(process: WorkerProcess) -> None:
    """Run a process that ends by itself, and find that out."""
    with process:
        wait_for("its end", lambda: not process.alive())
        process.check_alive()


def test_death_is_told_with_status_and_log(tmp_path: Path) -> None:
    process = worker(tmp_path, "print('no more memory'); raise SystemExit(9)")
    with pytest.raises(WorkerDied) as told:
        dies(process)
    assert "exit status 9" in str(told.value)
    assert "no more memory" in str(told.value)
    assert str(process.log_path) in str(told.value)
    assert process.log_path.exists()
    assert any(str(process.log_path) in note for note in told.value.__notes__)


def test_a_signal_is_told_by_name(tmp_path: Path) -> None:
    process = worker(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGABRT)")
    process.start()
    wait_for("its end", lambda: not process.alive())
    assert process.told().startswith("ended by SIGABRT; log ")
    assert process.stop() == -signal.SIGABRT


def test_the_log_of_a_process_that_ended_by_itself_is_kept(tmp_path: Path) -> None:
    with worker(tmp_path, "print('bye')") as process:
        wait_for("its end", lambda: not process.alive())
    assert process.log_tail() == "bye"


def test_a_command_that_does_not_exist_ends_at_once_and_says_so(tmp_path: Path) -> None:
    process = WorkerProcess(["/nowhere/engine"], tmp_path / "log")
    process.start()
    wait_for("its end", lambda: not process.alive())
    assert process.stop() == 127
    assert "cannot run /nowhere/engine: No such file" in process.log_tail()


def test_a_log_that_cannot_be_written_is_an_environment_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    process = WorkerProcess([sys.executable], tmp_path / "file" / "log")
    with pytest.raises(EnvironmentFailure, match="cannot start"):
        process.start()
    assert not process.alive()
    assert process.stop() is None


def test_what_was_not_started_has_no_pid(tmp_path: Path) -> None:
    process = worker(tmp_path, SLEEPS)
    assert not process.alive()
    assert process.status is None
    with pytest.raises(EnvironmentFailure, match="start it first"):
        _ = process.pid


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    process = worker(tmp_path, SLEEPS)

    def start_and_see_it_up() -> None:
        process.start()
        says(process, "up")

    thread = threading.Thread(target=start_and_see_it_up)
    thread.start()
    number = str(thread.native_id)
    thread.join()
    wait_for("the end of the thread", lambda: number not in os.listdir("/proc/self/task"))
    assert process.alive()
    assert process.stop(BOUND_S) == -signal.SIGTERM


PARENT = f"""
import sys, time
from pathlib import Path
from tierfuzz.worker.process import WorkerProcess
process = WorkerProcess([sys.executable, "-c", {STUBBORN!r}], Path(sys.argv[1]))
process.start()
while "up" not in process.log_tail():
    time.sleep(0.002)
print(process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_child_survives_its_parent(tmp_path: Path, end: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not gone(child)
        parent.send_signal(end)
        parent.wait(BOUND_S)
    wait_for("the child's end", lambda: gone(child))


def test_a_child_is_told_when_its_parent_was_dead_before_it_ran(tmp_path: Path) -> None:
    from tierfuzz.worker import guard

    marker = tmp_path / "ran"
    stranger = str(os.getpid() + 1)  # not the parent of what we start
    command = [sys.executable, "-I", "-S", guard.__file__, stranger, "touch", str(marker)]
    assert subprocess.run(command, check=False).returncode == guard.ORPHANED
    assert not marker.exists()
