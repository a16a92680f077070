"""Where zkbackup's settings come from, and which wins; how booleans are said."""

import json
from pathlib import Path

import pytest

from logkeep.cli.frame.command_groups import CommandEntry
from logkeep.cli.zkbackup.command import with_boolean_values
from logkeep.cli.zkbackup.main import COMMANDS
from logkeep.cli.zkbackup.options import (
    BACKUP_BEFORE_RESTORE,
    BASE_DIR,
    COMPRESSION_LEVEL,
    HOST,
    KEEP_DAYS,
    LOG_LEVEL,
    OPTIONS,
    OUTPUT_DIR,
    VALIDATION_TIMEOUT,
    VERIFY,
    BundleId,
)
from logkeep.cli.zkbackup.settings import load_settings, places
from logkeep.config.option_types import ZxidNumber
from logkeep.errors import ConfigError
from tests.support.cli.bundle_documents import put, zkbackup

SEED = """\
zookeeper:
  data_dir: /zookeeper/data/version-2
  log_dir: /zookeeper/datalog/version-2
  host: localhost:2181
  timeout: 5
backup:
  base_dir: /backup/zookeeper
  compression: gzip
  compression_level: 6
  auto_verify: true
  auto_repair: true
  concurrent_copies: 4
restore:
  require_confirmation: true
  verify_before_restore: true
  backup_before_restore: true
prune:
  keep_days: 7
  keep_min_count: 3
  require_confirmation: true
logging:
  level: info
  format: text
  output: stdout
  file: /var/log/zkbackup/zkbackup.log
advanced:
  max_txn_record_size: 10485760
  copy_buffer_size: 1048576
  validation_timeout: 300
"""


def test_every_key_of_the_design_is_known(tmp_path: Path) -> None:
    (tmp_path / "zkbackup.yaml").write_text(SEED)
    settings, warnings = load_settings({}, {}, places({}, tmp_path, None, tmp_path / "none"))
    assert not warnings
    assert (settings[COMPRESSION_LEVEL], settings[VALIDATION_TIMEOUT], settings[VERIFY]) == (6, 300, True)
    keys = {line.split(":")[0].strip() for line in SEED.splitlines() if line.startswith("  ")}
    assert keys <= {option.key.partition(".")[2] for option in OPTIONS}


def test_flag_then_variable_then_the_three_files(tmp_path: Path) -> None:
    files = [tmp_path / "here" / "zkbackup.yaml", tmp_path / "home" / ".zkbackup.yaml", tmp_path / "etc.yaml"]
    for number, file in enumerate(files, 1):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"prune: {{keep_days: {number}}}\n")
    environ = {"HOME": str(tmp_path / "home")}
    where = places(environ, tmp_path / "here", None, tmp_path / "etc.yaml")
    assert load_settings({"--keep-days": "9"}, {"ZKBACKUP_PRUNE_KEEP_DAYS": "8"}, where)[0][KEEP_DAYS] == 9
    assert load_settings({}, {"ZKBACKUP_PRUNE_KEEP_DAYS": "8"}, where)[0][KEEP_DAYS] == 8
    for number, file in enumerate(files, 1):
        assert load_settings({}, {}, where)[0][KEEP_DAYS] == number
        file.unlink()
    assert load_settings({}, {}, where)[0][KEEP_DAYS] == 7


def test_one_key_serves_both_names_of_the_base_directory(tmp_path: Path) -> None:
    environ = {"ZKBACKUP_BACKUP_BASE_DIR": "/there"}
    settings, _ = load_settings({}, environ, places({}, tmp_path, None, tmp_path / "none"))
    assert settings[BASE_DIR] == settings[OUTPUT_DIR] == Path("/there")


def test_a_named_file_stands_for_the_one_here(tmp_path: Path) -> None:
    (tmp_path / "zkbackup.yaml").write_text("zookeeper: {host: here:1}\n")
    (tmp_path / "other.yaml").write_text("zookeeper: {host: other:1}\n")
    settings, _ = load_settings({}, {}, places({}, tmp_path, tmp_path / "other.yaml", tmp_path / "none"))
    assert settings[HOST] == "other:1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("backup: {compresion: gzip}", "unknown key backup.compresion"),
        ("backup: {compression: lz4}", "must be one of none, gzip, zstd"),
        ("backup: {compression_level: 10}", "at most 9"),
        ("prune: {keep_days: soon}", "must be a whole number"),
        ("prune: {keep_days: 1}\nprune: {keep_days: 2}", "twice"),
        ("[", "is not valid YAML"),
    ],
)
def test_what_a_file_must_not_hold(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "zkbackup.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings({}, {}, places({}, tmp_path, None, tmp_path / "none"))
    assert said in str(caught.value)
    assert str(file) in caught.value.subject
    assert "logkeep" not in caught.value.remedy


def test_an_unknown_variable_is_a_warning(tmp_path: Path) -> None:
    where = places({}, tmp_path, None, tmp_path / "none")
    _, warnings = load_settings({}, {"ZKBACKUP_PRUNE_KEEPDAYS": "3", "LOGKEEP_REPO": "x"}, where)
    assert warnings == ("unknown variable ZKBACKUP_PRUNE_KEEPDAYS: did you mean ZKBACKUP_PRUNE_KEEP_DAYS?",)
    assert load_settings({}, {}, where)[0][BACKUP_BEFORE_RESTORE]
    assert load_settings({}, {"ZKBACKUP_LOGGING_LEVEL": "warn"}, where)[0][LOG_LEVEL] == "warn"


def test_booleans_in_every_spelling() -> None:
    said = ["--x", "--no-x", "--x=true", "--x=false", "--y", "name", "--", "--x"]
    wanted = ["--x=true", "--x=false", "--x=true", "--x=false", "--y", "name", "--", "--x"]
    assert with_boolean_values(said, {"--x"}) == wanted


@pytest.mark.parametrize(
    ("flags", "gone"),
    [
        (("--dry-run",), False),
        (("--dry-run=true",), False),
        (("--dry-run=false",), True),
        (("--no-dry-run",), True),
        ((), True),
    ],
)
def test_booleans_on_the_command_line(tmp_path: Path, flags: tuple[str, ...], gone: bool) -> None:
    base = tmp_path / "b"
    put(base, "new"), put(base, "old", days=30)
    done = zkbackup("prune", "--backup-base-dir", str(base), "--keep-min-count=1", "--force", *flags, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (base / "old").exists() is not gone


def test_a_value_that_is_no_boolean(tmp_path: Path) -> None:
    done = zkbackup("prune", "--force=maybe", "--format=json", home=tmp_path)
    assert done.returncode == 40
    said = json.loads(done.stderr)
    assert (said["category"], said["exit_code"]) == ("user", 40)
    assert "--force must be true or false" in said["message"]


@pytest.mark.parametrize(
    ("text", "number"), [("0x500000001", 21474836481), ("21474836481", 21474836481), ("0XfF", 255)]
)
def test_zxids(text: str, number: int) -> None:
    assert ZxidNumber().parse(text) == number
    assert ZxidNumber().parse(ZxidNumber().show(number)) == number


@pytest.mark.parametrize("text", ["5f8f", "-1", "0x", "", "0x8000000000000000", "1e3", "٣"])
def test_no_zxids(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        ZxidNumber().parse(text)


def test_a_zxid_as_in_names_of_files() -> None:
    with pytest.raises(ValueError, match=r"not '5f8f'; did you mean 0x5f8f\?"):
        ZxidNumber().parse("5f8f")


@pytest.mark.parametrize("text", ["", ".", "..", ".x", "a/b", "a b", "x" * 65, "a\n", "ä"])
def test_no_names_of_bundles(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        BundleId().parse(text)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.words)
def test_the_list_of_commands_has_the_first_line_of_each_help_text(entry: CommandEntry) -> None:
    assert (entry.load().help or "").splitlines()[0] == entry.summary
