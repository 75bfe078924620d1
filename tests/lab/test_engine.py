"""An Azure engine on this machine: its Python, its folder, its variables, its processes."""

from __future__ import annotations

import os
import random
import signal
import stat
import sys
import threading
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest

from lab import engine, variables
from lab.autostop import Watch
from lab.cli import CannotRun
from lab.criteria import auto_stop
from lab.manifest import Manifest, load
from lab.stats import Sample
from tests.lab.folders import BEGAN, row, write_part

MANIFEST = """\
version: v0.1
testId: mcp-multi-flat
testType: Locust
testPlan: plan.py
engineInstances: 1
"""
FOR_EVER = "import signal; signal.pause()"
Write = Callable[..., Manifest]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A manifest with more lines than the minimal one, and the files it may name."""

    def write(*lines: str) -> Manifest:
        folder = tmp_path / "project"
        (folder / "queries").mkdir(parents=True, exist_ok=True)
        (folder / "plan.py").write_text("PLAN = 1\n")
        (folder / "unlisted.py").write_text("UNLISTED = 1\n")
        (folder / "queries" / "words.txt").write_text("one\n")
        (folder / "azure-loadtest.yaml").write_text(MANIFEST + "\n".join(lines) + "\n")
        return load(folder)

    return write


# --- which Python ------------------------------------------------------------------------------


def pretend(folder: Path, name: str, version: str) -> Path:
    """A program that says of itself what a Python of the version would say, or that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    lines = "\\n".join([str(path), *version.split(".")])
    path.write_text(f"#!/bin/sh\nprintf '{lines}\\n'\n" if version else "#!/bin/sh\nexit 127\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_python_of_the_engines_version_is_found_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pretend(tmp_path, "python3.9", "3.9.77")
    pretend(tmp_path, "python3.13", "3.13.1")
    monkeypatch.setenv("PATH", str(tmp_path))

    python = engine.find_python()

    assert (python.path, python.version) == (str(found), "3.9.77")
    assert python.is_the_engines


def test_a_python_that_does_not_start_is_passed_over_for_one_that_pyenv_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path, "python3.9", "")
    found = pretend(tmp_path / "versions" / "3.9.77" / "bin", "python", "3.9.77")
    pretend(tmp_path, "pyenv", "").write_text(f"#!/bin/sh\necho {tmp_path}\n")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert engine.find_python().path == str(found)


def test_without_the_engines_python_the_newest_is_taken_and_is_not_called_the_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path, "python3.10", "3.10.4")
    pretend(tmp_path, "python3.13", "3.13.1")
    monkeypatch.setenv("PATH", str(tmp_path))

    python = engine.find_python()

    assert python.version == "3.13.1"
    assert not python.is_the_engines


def test_where_no_other_python_starts_the_labs_own_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert engine.find_python().path == sys.executable


def test_a_named_python_that_does_not_start_is_refused_by_its_name(tmp_path: Path) -> None:
    broken = pretend(tmp_path, "python", "")

    with pytest.raises(CannotRun, match=f"--python {broken}: it does not start"):
        engine.find_python(str(broken))


# --- its folder --------------------------------------------------------------------------------


def test_an_engine_has_exactly_the_listed_files_by_their_basenames(
    write: Write, tmp_path: Path
) -> None:
    manifest = write("configurationFiles: [queries/words.txt]")

    names = engine.lay_out(manifest, tmp_path / "engine")

    assert names == ["plan.py", "words.txt"]
    assert sorted(path.name for path in (tmp_path / "engine").iterdir()) == names


def test_of_two_files_of_one_name_the_later_stays(write: Write, tmp_path: Path) -> None:
    manifest = write("configurationFiles: [queries/words.txt, words.txt]")
    (manifest.folder / "words.txt").write_text("the later\n")

    engine.lay_out(manifest, tmp_path / "engine")

    assert (tmp_path / "engine" / "words.txt").read_text() == "the later\n"


def test_a_zip_is_unpacked_on_the_engine(write: Write, tmp_path: Path) -> None:
    manifest = write("zipArtifacts: [more.zip]")
    with zipfile.ZipFile(manifest.folder / "more.zip", "w") as archive:
        archive.writestr("inner.txt", "inside")

    engine.lay_out(manifest, tmp_path / "engine")

    assert (tmp_path / "engine" / "inner.txt").read_text() == "inside"


def test_a_listed_file_that_does_not_exist_is_named_with_its_line(
    write: Write, tmp_path: Path
) -> None:
    manifest = write("configurationFiles:", "  - queries/none.txt")

    with pytest.raises(
        CannotRun, match=r"azure-loadtest\.yaml:7: configurationFiles lists queries/none\.txt"
    ):
        engine.lay_out(manifest, tmp_path / "engine")


def test_the_user_property_file_is_locusts_configuration(write: Write) -> None:
    manifest = write("properties:", "  userPropertyFile: conf/locust.conf")

    options = engine.options(manifest, Path("/elsewhere/record.py"))

    assert options[:4] == ["-f", "plan.py,/elsewhere/record.py", "--config", "locust.conf"]
    assert "--headless" in options


# --- its variables -----------------------------------------------------------------------------

ANNOUNCED: Mapping[str, Mapping[str, str]] = {
    "urls": {"LEARN_MCP_URL": "http://127.0.0.1:1/api/mcp"},
    "tokens": {"GITHUB_MCP_TOKEN": "stand-in's", "ADO_MCP_TOKEN": "stand-in's"},
    "env": {"ADO_ORG": "stand-in's"},
}
SECRETS = (
    "secrets:",
    "  - name: GITHUB_MCP_TOKEN",
    "    value: https://v.vault.azure.net/secrets/a",
    "  - name: MORE_KEY",
    "    value: https://v.vault.azure.net/secrets/b",
)


def test_an_engine_has_no_variable_of_this_machine_but_those_that_programs_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_MCP_TOKEN", "a token of the caller's")
    monkeypatch.setenv("LOCUST_HOST", "https://caller.test")

    given = variables.of_the_machine(tmp_path / "bin" / "python", tmp_path / "home")

    assert set(given) <= {
        *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"),
        "PYTHONUNBUFFERED",
    }
    assert given["HOME"] == str(tmp_path / "home")
    assert given["PATH"].startswith(f"{tmp_path / 'bin'}{os.pathsep}")


def test_standins_get_dummies_for_secrets_and_no_variable_that_the_yaml_does_not_name(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MORE_KEY", "a real secret")
    manifest = write("env:", "  - name: LEARN_USERS", "    value: '5'", *SECRETS)

    given = variables.for_standins(manifest, ANNOUNCED)

    assert given == {
        "LEARN_USERS": "5",
        "GITHUB_MCP_TOKEN": "stand-in's",
        "MORE_KEY": "dummy-more_key",
        "LEARN_MCP_URL": "http://127.0.0.1:1/api/mcp",
    }


def test_secrets_for_real_servers_come_by_name_from_the_environment_and_from_dotenv(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write(*SECRETS)
    (manifest.folder / ".env").write_text("MORE_KEY=from-the-file\nOTHER=unlisted\n")
    monkeypatch.setenv("GITHUB_MCP_TOKEN", "from-the-environment")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.delenv("MORE_KEY", raising=False)

    given, ends = variables.for_real_servers(manifest)

    assert given == {"GITHUB_MCP_TOKEN": "from-the-environment", "MORE_KEY": "from-the-file"}
    assert ends == {}


def test_secrets_without_a_value_are_named_together_and_never_shown(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write(*SECRETS)
    monkeypatch.delenv("GITHUB_MCP_TOKEN", raising=False)
    monkeypatch.setenv("MORE_KEY", "  ")
    monkeypatch.setenv("MCP_VAULT", "0")

    with pytest.raises(CannotRun, match="no value here for GITHUB_MCP_TOKEN, MORE_KEY, which"):
        variables.for_real_servers(manifest)


def test_a_placeholder_is_refused_for_real_servers(write: Write) -> None:
    manifest = write("env:", "  - name: ADO_ORG", "    value: YOUR-ORG")

    with pytest.raises(CannotRun, match="ADO_ORG is still the placeholder YOUR-ORG: fill it in"):
        variables.for_real_servers(manifest)


def test_one_engine_gets_the_yamls_users_untouched(write: Write) -> None:
    assert variables.shared_out({"LOCUST_USERS": "17"}, write(), 1) == [{"LOCUST_USERS": "17"}]


def test_engines_share_users_and_spawn_rate(write: Write) -> None:
    given = {"LOCUST_USERS": "17", "LOCUST_SPAWN_RATE": "5"}

    shares = variables.shared_out(given, write(), 2)

    assert [each["LOCUST_USERS"] for each in shares] == ["9", "8"]
    assert [each["LOCUST_SPAWN_RATE"] for each in shares] == ["2.5", "2.5"]


def test_users_of_locust_conf_are_shared_as_well(write: Write) -> None:
    manifest = write("properties:", "  userPropertyFile: locust.conf")
    (manifest.folder / "locust.conf").write_text("users = 8\nspawn-rate = 4\nrun-time = 15m\n")

    shares = variables.shared_out({}, manifest, 4)

    assert [each["LOCUST_USERS"] for each in shares] == ["2"] * 4
    assert variables.run_seconds({}, manifest) == 900.0
    assert variables.run_seconds({"LOCUST_RUN_TIME": "60"}, manifest) == 60.0


def test_an_engine_without_users_is_refused(write: Write) -> None:
    with pytest.raises(CannotRun, match="LOCUST_USERS 1 for 2 engines"):
        variables.shared_out({"LOCUST_USERS": "1"}, write(), 2)


# --- its processes -----------------------------------------------------------------------------


def stations(folder: Path, *codes: str) -> list[engine.Station]:
    """A place for each code, which is given as a variable, as all share one command line."""
    return [
        engine.Station(folder, {**os.environ, "CODE": code}, folder / f"{number}.log")
        for number, code in enumerate(codes, 1)
    ]


WORDS = [sys.executable, "-c", "import os; exec(os.environ['CODE'])"]


def left_over() -> list[int]:
    return [each.pid for each in psutil.Process().children() if each.cmdline()[:2] == WORDS[:2]]


def test_engines_that_end_by_themselves_give_0_and_log_what_they_said(tmp_path: Path) -> None:
    with engine.Engines(WORDS, stations(tmp_path, "print('one')", "print('two')")) as engines:
        code = engines.wait(lambda gone: False, 60.0)

    assert code == 0
    assert [(tmp_path / f"{n}.log").read_text() for n in (1, 2)] == ["one\n", "two\n"]


def test_one_engine_that_fails_ends_the_others_and_gives_its_exit_code(tmp_path: Path) -> None:
    with engine.Engines(WORDS, stations(tmp_path, FOR_EVER, "exit(3)")) as engines:
        code = engines.wait(lambda gone: False, 60.0)

    assert code == 3
    assert left_over() == []


def test_the_look_stops_all_engines(tmp_path: Path) -> None:
    with engine.Engines(WORDS, stations(tmp_path, FOR_EVER, FOR_EVER)) as engines:
        code = engines.wait(lambda gone: True, None)

    assert code == -signal.SIGTERM
    assert left_over() == []


def test_engines_are_stopped_after_the_most_seconds(tmp_path: Path) -> None:
    with engine.Engines(WORDS, stations(tmp_path, FOR_EVER)) as engines:
        assert engines.wait(lambda gone: False, 0.05) == -signal.SIGTERM


def test_a_signal_to_us_ends_the_engines_and_then_is_ours_again(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def look(gone: float) -> bool:
        if not sent.is_set():
            sent.set()
            os.kill(os.getpid(), signal.SIGTERM)
        return False

    sent = threading.Event()
    with engine.Engines(WORDS, stations(tmp_path, FOR_EVER)) as engines:
        engines.wait(look, 60.0)

    assert left_over() == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_exception_leaves_no_engine(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), engine.Engines(WORDS, stations(tmp_path, FOR_EVER)):
        _ = 1 / 0

    assert left_over() == []


def test_a_command_that_cannot_be_started_leaves_no_engine(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError),
        engine.Engines(["no-such-program-anywhere"], stations(tmp_path, FOR_EVER, FOR_EVER)),
    ):
        pass

    assert left_over() == []


# --- autoStop ----------------------------------------------------------------------------------

STOP = ("autoStop:", "  errorPercentage: 50", "  timeWindow: 10")


def test_the_watch_stops_where_the_finished_run_would_have_been_stopped(
    write: Write, tmp_path: Path
) -> None:
    generator = random.Random(9)
    for turn in range(20):
        folder = tmp_path / str(turn)
        drawn = [
            (second + generator.random(), generator.random() < second / 40) for second in range(40)
        ]
        samples = [Sample("a:b", BEGAN + at, 50.0, success=not failed) for at, failed in drawn]
        expected = auto_stop(samples, 50.0, 10.0)
        failure = OSError("x")
        write_part(
            folder, [row("a:b", at, 50.0, failure if failed else None) for at, failed in drawn]
        )
        watch = Watch(folder, write(*STOP))

        assert watch.look(0.0) == (expected is not None)
        if expected is not None:
            since = expected - min(each.start for each in samples)
            assert f"{since:.0f} s after the first request" in watch.said


def test_the_watch_sees_the_rows_of_all_engines_as_they_are_written(
    write: Write, tmp_path: Path
) -> None:
    good = [row("a:b", second, 50.0) for second in range(12)]
    bad = [row("a:b", second + 0.5, 50.0, OSError("x")) for second in range(12)]
    write_part(tmp_path, good)
    path = write_part(tmp_path, [*bad, row("a:b", 12.5, 50.0, OSError("x"))], number=2)
    text = path.read_text()
    watch = Watch(tmp_path, write("autoStop:", "  errorPercentage: 50", "  timeWindow: 5"))

    path.write_text(text[:-30])  # the last row is not whole yet
    assert not watch.look(0.0)
    path.write_text(text)
    assert not watch.look(0.5)  # not due before a second has gone by
    assert watch.look(1.5)


def test_without_autostop_the_services_default_holds(write: Write, tmp_path: Path) -> None:
    write_part(tmp_path, [row("a:b", second, 50.0, OSError("x")) for second in range(62)])
    watch = Watch(tmp_path, write())

    assert watch.look(0.0)
    assert "the service's default" in watch.said
    assert "more than 90 % of errors in 60 s" in watch.said


def test_autostop_that_is_disabled_stops_nothing(write: Write, tmp_path: Path) -> None:
    write_part(tmp_path, [row("a:b", second, 50.0, OSError("x")) for second in range(62)])
    watch = Watch(tmp_path, write("autoStop: disable"))

    assert not watch.look(0.0)
    assert "disabled" in watch.said


def test_more_users_on_an_engine_than_autostop_allows_stop_the_run(
    write: Write, tmp_path: Path
) -> None:
    path = write_part(tmp_path, [row("a:b", 1.0)])
    header, line = path.read_text().splitlines()
    cells = line.split(",")
    cells[header.split(",").index("allThreads")] = "3"
    path.write_text(f"{header}\n{','.join(cells)}\n")
    watch = Watch(tmp_path, write(*STOP, "  maximumVirtualUsersPerEngine: 2"))

    assert watch.look(0.0)
    assert "3 users on one engine, and maximumVirtualUsersPerEngine is 2" in watch.said
