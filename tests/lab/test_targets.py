"""A target is started, awaited, known by its pid and always stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lab.targets import Target, TargetFailed, standins

ROOT = Path(__file__).parents[2]
READY = "print('ready to serve', flush=True); "
FOR_EVER = "import sys; sys.stdin.read()"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_gone(pid: int) -> bool:
    """Whether the process ended; one that nobody reaped yet has ended, too."""
    try:
        process = psutil.Process(pid)
        process.wait(5)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_target_is_ready_when_it_says_the_line() -> None:
    with Target(python(READY + FOR_EVER), "ready to") as target:
        assert target.ready_line == "ready to serve"
        assert psutil.Process(target.pid).is_running()

    assert is_gone(target.pid)


def test_a_target_is_ready_when_its_port_answers() -> None:
    port = free_port()
    code = f"import socket; s = socket.create_server(('127.0.0.1', {port})); {FOR_EVER}"

    with Target(python(code), port), socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


def test_a_port_that_someone_else_serves_is_refused_before_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        target = Target(python(FOR_EVER), port)

        with pytest.raises(TargetFailed, match=f"already answers on 127.0.0.1:{port}"):
            target.start()

    with pytest.raises(RuntimeError, match="was not started"):
        _ = target.pid


def test_a_target_that_ends_too_early_is_reported_with_its_last_lines() -> None:
    code = "import sys; print('reading settings'); print('no such key', file=sys.stderr); exit(3)"

    with pytest.raises(TargetFailed) as failed:
        Target(python(code), "listening").start()

    text = str(failed.value)
    assert "exited with 3 before a line with 'listening'" in text
    assert sys.executable in text
    assert "| reading settings" in text
    assert "| no such key" in text


def test_a_target_that_never_gets_ready_is_stopped_and_reported() -> None:
    target = Target(python(FOR_EVER), "listening", ready_seconds=0.3)

    with pytest.raises(TargetFailed, match=r"no sign of a line with 'listening' within 0.3 s"):
        target.start()

    assert is_gone(target.pid)


def test_a_command_that_does_not_exist_is_named() -> None:
    with pytest.raises(TargetFailed, match="no-such-server-anywhere: cannot be started"):
        Target(["no-such-server-anywhere"], "ready").start()


def test_an_exception_in_the_block_stops_the_target() -> None:
    target = Target(python(READY + FOR_EVER), "ready")

    with pytest.raises(ZeroDivisionError), target:
        _ = 1 / 0

    assert is_gone(target.pid)


def test_a_process_that_dies_by_an_exception_takes_its_target_along() -> None:
    code = (
        "from lab.targets import Target; import sys\n"
        f"target = Target([sys.executable, '-c', {READY + FOR_EVER!r}], 'ready').start()\n"
        "print(target.pid, flush=True)\n"
        "raise SystemError('the caller dies')"
    )

    caller = subprocess.run(python(code), capture_output=True, text=True, cwd=ROOT, check=False)

    assert "the caller dies" in caller.stderr
    assert is_gone(int(caller.stdout))


def test_a_target_that_ignores_the_polite_signal_is_killed() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "

    with Target(python(deaf + READY + FOR_EVER), "ready", stop_seconds=0.2) as target:
        pass

    assert target.returncode == -signal.SIGKILL


def test_what_the_target_started_ends_with_it() -> None:
    child = f"[sys.executable, '-c', {FOR_EVER!r}]"
    code = (
        "import subprocess, sys; "
        f"c = subprocess.Popen({child}, stdin=subprocess.PIPE); print('child', c.pid, flush=True); "
        "sys.stdin.read()"
    )

    with Target(python(code), r"child \d+") as target:
        child_pid = int(target.ready_line.split()[1])
        assert psutil.pid_exists(child_pid)

    assert is_gone(child_pid)


def test_stopping_twice_does_nothing_the_second_time() -> None:
    with Target(python(READY + FOR_EVER), "ready") as target:
        target.stop()
        code = target.returncode
        target.stop()

    assert target.returncode == code == -signal.SIGTERM


def test_variables_and_folder_reach_the_target(tmp_path: Path) -> None:
    code = "import os; print('ready', os.environ['COLOUR'], os.getcwd(), flush=True)"

    with Target(python(code), "ready", env={"COLOUR": "teal"}, cwd=tmp_path) as target:
        assert target.ready_line == f"ready teal {os.path.realpath(tmp_path)}"


def test_the_flags_of_the_stand_ins_become_their_command_line(tmp_path: Path) -> None:
    target = standins(
        tmp_path, seed=7, faults="published", slow=["ado:wit_work_item=5"], sessions="off"
    )

    assert target.command[1:] == [
        *("-m", "lab.standins", "--run-dir", str(tmp_path), "--seed", "7"),
        *("--faults", "published", "--sessions", "off", "--slow", "ado:wit_work_item=5"),
    ]


def test_a_flag_that_the_stand_ins_refuse_fails_the_start_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(TargetFailed, match="github has no tool 'nosuch'"):
        standins(tmp_path, broken=["github:nosuch"]).start()
