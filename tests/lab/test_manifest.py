"""lab/manifest.py: the file as data with lines, and nothing left to interpretation."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.lint.finding import Finding, Level
from lab.manifest import AutoStop, Entry, Identity, Manifest, ManifestError, load, read

MINIMAL = Path("lab/data/azure/minimal-valid-azure-loadtest.yaml")


@pytest.fixture
def write(tmp_path: Path) -> Path:
    """Return the manifest's path, for a test that fills it."""
    return tmp_path / "azure-loadtest.yaml"


def minimal() -> Manifest:
    return load(Path(__file__).parents[2] / MINIMAL)


def errors(path: Path, text: str) -> list[Finding]:
    path.write_text(text, encoding="utf-8")
    return [f for f in read(path)[1] if f.level is Level.ERROR]


def test_the_minimal_file_is_read_whole() -> None:
    manifest = minimal()

    assert manifest.test_id == "mcp-multi-flat"
    assert manifest.test_plan is not None
    assert manifest.test_plan.path == "multi.py"
    assert manifest.engine_instances == 1
    assert [f.path for f in manifest.configuration_files] == [
        "_base.py",
        "requirements.txt",
        "queries.txt",
    ]
    assert manifest.user_property_file is not None
    assert manifest.user_property_file.path == "locust.conf"
    assert manifest.environment == {
        "LOCUST_USERS": "17",
        "LOCUST_SPAWN_RATE": "5",
        "LOCUST_RUN_TIME": "900",
    }
    assert [s.name for s in manifest.secrets] == ["GITHUB_MCP_TOKEN"]
    assert manifest.identities == (Identity("KeyVault", "SystemAssigned", "", 25),)
    assert [c.text for c in manifest.criteria] == [
        "percentage(error) > 5",
        "avg(response_time_ms) > 8000",
        "count(requests) < 100",
        "p95(response_time_ms) > 4000",
    ]
    assert manifest.auto_stop == AutoStop(80.0, 60.0, None, 33)


def test_every_part_knows_its_line() -> None:
    manifest = minimal()

    assert manifest.env[0] == Entry("LOCUST_USERS", "17", 15)
    assert manifest.configuration_files[2].line == 11
    assert manifest.criteria[3].line == 32
    assert manifest.document.line("env", 1, "value") == 18
    assert manifest.document.line("env", 1, "no such part") == 17
    assert manifest.document.line("nowhere") == 1


def test_the_files_are_all_that_is_uploaded() -> None:
    assert [f.basename for f in minimal().files] == [
        "multi.py",
        "locust.conf",
        "_base.py",
        "requirements.txt",
        "queries.txt",
    ]


def test_a_folder_stands_for_the_manifest_in_it(write: Path) -> None:
    write.write_text("testId: here\n", encoding="utf-8")

    assert load(write.parent).test_id == "here"


def test_a_byte_order_mark_hides_nothing(write: Path) -> None:
    write.write_text("\ufefftestId: here\n", encoding="utf-8")

    assert load(write).test_id == "here"


def test_a_missing_manifest_is_one_line_with_its_path_and_the_cure(tmp_path: Path) -> None:
    with pytest.raises(
        ManifestError, match=r"cannot be read .*nowhere.* Name the folder"
    ) as caught:
        load(tmp_path / "nowhere")

    assert "\n" not in str(caught.value)


def test_a_duplicate_key_is_an_error_with_both_lines(write: Path) -> None:
    (finding,) = errors(write, "testId: a\ntestPlan: b.py\ntestId: c\n")

    assert finding.line == 3
    assert "first on line 1" in finding.what
    assert finding.value == "testId"


def test_a_duplicate_key_deep_inside_is_found_too(write: Path) -> None:
    (finding,) = errors(write, "env:\n- name: A\n  value: x\n  name: B\n")

    assert finding.line == 4


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "empty"),
        ("# a comment alone\n", "empty"),
        ("- a\n- b\n", "a list"),
        ("word\n", "single value"),
        ("a: b\n---\nc: d\n", "2 documents"),
    ],
)
def test_what_is_not_one_mapping_is_refused(write: Path, text: str, found: str) -> None:
    (finding,) = errors(write, text)

    assert found in finding.value


@pytest.mark.parametrize(
    "scalar", ["yes", "off", "017", "0x1F", "1:30", "1_000", "1e3", "0o17", "2026-05-09", ".inf"]
)
def test_a_scalar_that_the_two_yaml_versions_read_differently_is_refused(
    write: Path, scalar: str
) -> None:
    (finding,) = errors(write, f"displayName: {scalar}\n")

    assert (finding.line, finding.value) == (1, scalar)
    assert f'"{scalar}"' in finding.cure


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("17", 17),
        ("-3", -3),
        ("1.5", 1.5),
        ("true", True),
        ("False", False),
        ("null", None),
        ("", None),
        ("~", None),
        ('"017"', "017"),
        ("v0.1", "v0.1"),
        ("'yes'", "yes"),
        ("!!str 17", "17"),
    ],
)
def test_a_scalar_that_all_read_alike_is_taken(write: Path, scalar: str, value: object) -> None:
    write.write_text(f"displayName: {scalar}\n", encoding="utf-8")

    manifest = load(write)

    assert manifest.document.data == {"displayName": value}
    assert type(manifest.document.data["displayName"]) is type(value)


def test_a_tag_is_refused(write: Path) -> None:
    (finding,) = errors(write, "a: !!int '3'\n")

    assert "tag" in finding.what


def test_anchors_and_merges_are_followed(write: Path) -> None:
    write.write_text(
        "env:\n- &first\n  name: A\n  value: x\n- <<: *first\n  name: B\n", encoding="utf-8"
    )

    assert load(write).environment == {"A": "x", "B": "x"}


def test_an_alias_inside_what_it_names_is_refused(write: Path) -> None:
    (finding,) = errors(write, "a: &a\n- *a\n")

    assert finding.line in {1, 2}
    assert "alias" in finding.what


def test_a_number_as_a_key_is_refused_with_the_quoted_form(write: Path) -> None:
    (finding,) = errors(write, "failureCriteria:\n- 404: avg(response_time_ms) > 2000\n")

    assert finding.line == 2
    assert '"404"' in finding.cure


def test_broken_yaml_is_an_error_with_its_line_and_without_the_text_around_it(write: Path) -> None:
    (finding,) = errors(write, "testId: a\nsecret: ghp_a: b\n")

    assert finding.line == 2
    assert "ghp_" not in str(finding)


def test_text_that_is_not_utf_8_is_refused(write: Path) -> None:
    write.write_bytes(b"testId: \xff\n")

    manifest, (finding,) = read(write)

    assert manifest is None
    assert "UTF-8" in finding.what


def test_parts_of_the_wrong_type_are_left_out_and_nothing_breaks(write: Path) -> None:
    write.write_text(
        "testPlan: 3\nengineInstances: two\nconfigurationFiles: {a: b}\nenv: {A: b}\n"
        "secrets: x\nproperties: []\nfailureCriteria: {serverMetrics: 3}\nautoStop: [1]\n"
        "referenceIdentities: [1]\n",
        encoding="utf-8",
    )

    manifest, _ = read(write)

    assert manifest is not None
    assert (manifest.test_plan, manifest.engine_instances) == (None, 1)
    assert (manifest.files, manifest.env, manifest.secrets) == ((), (), ())
    assert (manifest.auto_stop, manifest.identities, manifest.server_metrics) == (None, (), 0)


def test_auto_stop_that_is_switched_off_is_told_from_one_that_is_absent(write: Path) -> None:
    write.write_text("autoStop: disable\n", encoding="utf-8")

    assert load(write).auto_stop_disabled
    assert not load(write).auto_stop


def test_of_a_variable_given_twice_the_last_counts(write: Path) -> None:
    write.write_text("env:\n- name: A\n  value: one\n- name: A\n  value: two\n", encoding="utf-8")

    manifest = load(write)

    assert manifest.environment == {"A": "two"}
    assert manifest.entry("A") == Entry("A", "two", 4)
    assert manifest.entry("B") is None


def test_a_criterion_with_two_meanings_stops_load_with_its_line(write: Path) -> None:
    write.write_text("failureCriteria:\n- percentage(error) > 0.5\n", encoding="utf-8")

    with pytest.raises(ManifestError, match=r"azure-loadtest\.yaml:2: error: a decimal limit"):
        load(write)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("failureCriteria: avg(latency) > 3\n", 1, "not a list"),
        ("failureCriteria:\n  foo: []\n", 2, "unknown key"),
        ("failureCriteria: {}\n", 1, "without a list"),
        ("failureCriteria:\n- a: avg(latency) > 1\n  b: avg(latency) > 2\n", 2, "drop all but"),
        ("failureCriteria:\n- ' a': avg(latency) > 1\n", 2, "blanks around"),
        ("failureCriteria:\n- avg(latency) > 1\n- avg(latency) > 2\n", 3, "line 2"),
        ("failureCriteria:\n" + "- avg(latency) > 1, stop\n", 2, "suffix"),
        (
            "failureCriteria:\n" + "".join(f'- "{n} x": avg(latency) > 1\n' for n in range(51)),
            1,
            "more than 50",
        ),
    ],
)
def test_criteria_that_are_not_a_list_of_single_limits_are_refused(
    write: Path, text: str, line: int, said: str
) -> None:
    (finding,) = errors(write, text)

    assert finding.line == line
    assert said in finding.what


def test_fifty_criteria_count_over_both_lists(write: Path) -> None:
    client = "".join(f'  - "{n} x": avg(latency) > 1\n' for n in range(50))
    server = "  - {resourceId: a, metricName: b, aggregation: c, condition: LessThan, value: 1}\n"

    (finding,) = errors(
        write, f"failureCriteria:\n  clientMetrics:\n{client}  serverMetrics:\n{server}"
    )

    assert finding.value == "51"


@pytest.mark.parametrize("text", ["failureCriteria:\n", "failureCriteria: []\n"])
def test_no_criteria_are_said_to_fail_nothing(write: Path, text: str) -> None:
    write.write_text(text, encoding="utf-8")

    _, (finding,) = read(write)

    assert finding.level is Level.WARNING
    assert "nothing can fail a run" in finding.what
